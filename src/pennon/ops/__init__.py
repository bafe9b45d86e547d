"""Changing tables: plan, tasks, one commit.

This is the door for the methods of a table's handle: each operation is imported when it is first named
here, so that who opens a table to read it loads no writer, no commit and no SQL.
"""

from typing import TYPE_CHECKING, Final

from pennon.names import lazy_names as _lazy_names

if TYPE_CHECKING:
    from pennon.index.kinds import is_scalar_kind as is_scalar_kind
    from pennon.index.kinds import is_vector_kind as is_vector_kind
    from pennon.ops.base_paths import add_bases as add_bases
    from pennon.ops.base_paths import trusting as trusting
    from pennon.ops.cleanup.drop import drop_table as drop_table
    from pennon.ops.cleanup.inventory import all_files as all_files
    from pennon.ops.cleanup.inventory import tracked_files as tracked_files
    from pennon.ops.cleanup.policy import Policy as Policy
    from pennon.ops.cleanup.run import Pace as Pace
    from pennon.ops.cleanup.run import clean as clean
    from pennon.ops.cleanup.run import survey_of as survey_of
    from pennon.ops.columns.alter import alter_columns as alter_columns
    from pennon.ops.columns.alter import drop_columns as drop_columns
    from pennon.ops.columns.alter import plan_alter as plan_alter
    from pennon.ops.columns.alterations import Alteration as Alteration
    from pennon.ops.columns.column_file import adopt_file as adopt_file
    from pennon.ops.columns.settings import update_config as update_config
    from pennon.ops.columns.settings import update_field_metadata as update_field_metadata
    from pennon.ops.columns.settings import update_schema_metadata as update_schema_metadata
    from pennon.ops.columns.settings import update_table_metadata as update_table_metadata
    from pennon.ops.columns.update import update_columns as update_columns
    from pennon.ops.index.check import check_indices as check_indices
    from pennon.ops.index.create import build_index as build_index
    from pennon.ops.index.create import check_name as check_name
    from pennon.ops.index.create import commit_segments as commit_segments
    from pennon.ops.index.create import create_index as create_index
    from pennon.ops.index.create import fragments_of as fragments_of
    from pennon.ops.index.create import in_folder as in_folder
    from pennon.ops.index.create import merge_segments as merge_segments
    from pennon.ops.index.create import plan_index as plan_index
    from pennon.ops.index.drop import drop_index as drop_index
    from pennon.ops.index.optimize import optimize_indices as optimize_indices
    from pennon.ops.index.parts import build_parts as build_parts
    from pennon.ops.index.parts import merge_parts as merge_parts
    from pennon.ops.index.vector_arguments import given_arguments as given_arguments
    from pennon.ops.index.vector_arguments import vector_kind as vector_kind
    from pennon.ops.index.vector_steps import load_codes as load_codes
    from pennon.ops.index.vector_steps import plan_codes as plan_codes
    from pennon.ops.index.vector_steps import sort_codes as sort_codes
    from pennon.ops.index.vector_steps import train_centroids as train_centroids
    from pennon.ops.index.vector_steps import train_codebook as train_codebook
    from pennon.ops.index.vector_steps import write_codes as write_codes
    from pennon.ops.repair import repair_manifest as repair_manifest
    from pennon.ops.rows.delete import delete as delete
    from pennon.ops.rows.delete import truncate as truncate
    from pennon.ops.rows.deletion_vectors import remove_rows as remove_rows
    from pennon.ops.rows.deletion_vectors import rows_at as rows_at
    from pennon.ops.rows.find_rows import bind_search as bind_search
    from pennon.ops.rows.find_rows import find_rows as find_rows
    from pennon.ops.rows.update import update as update
    from pennon.ops.source import as_reader as as_reader
    from pennon.ops.versions.branches import branches_of as branches_of
    from pennon.ops.versions.branches import clone_shallow as clone_shallow
    from pennon.ops.versions.branches import describe_branch as describe_branch
    from pennon.ops.versions.branches import drop_branch as drop_branch
    from pennon.ops.versions.branches import make_branch as make_branch
    from pennon.ops.versions.branches import restore as restore
    from pennon.ops.versions.deep_clone import copy_table as copy_table
    from pennon.ops.versions.refs import describe_tag as describe_tag
    from pennon.ops.versions.refs import drop_tag as drop_tag
    from pennon.ops.versions.refs import move_tag as move_tag
    from pennon.ops.versions.refs import open_version as open_version
    from pennon.ops.versions.refs import tag_version as tag_version
    from pennon.ops.versions.refs import tagged_version as tagged_version
    from pennon.ops.versions.refs import tags_of as tags_of
    from pennon.table.commit.migrate_naming import migrate_to_v2 as migrate_to_v2

_HOMES: Final = {
    "Alteration": "pennon.ops.columns.alterations",
    "Pace": "pennon.ops.cleanup.run",
    "Policy": "pennon.ops.cleanup.policy",
    "add_bases": "pennon.ops.base_paths",
    "trusting": "pennon.ops.base_paths",
    "adopt_file": "pennon.ops.columns.column_file",
    "all_files": "pennon.ops.cleanup.inventory",
    "alter_columns": "pennon.ops.columns.alter",
    "as_reader": "pennon.ops.source",
    "bind_search": "pennon.ops.rows.find_rows",
    "branches_of": "pennon.ops.versions.branches",
    "clean": "pennon.ops.cleanup.run",
    "clone_shallow": "pennon.ops.versions.branches",
    "copy_table": "pennon.ops.versions.deep_clone",
    "delete": "pennon.ops.rows.delete",
    "describe_branch": "pennon.ops.versions.branches",
    "describe_tag": "pennon.ops.versions.refs",
    "drop_branch": "pennon.ops.versions.branches",
    "drop_columns": "pennon.ops.columns.alter",
    "build_index": "pennon.ops.index.create",
    "check_indices": "pennon.ops.index.check",
    "build_parts": "pennon.ops.index.parts",
    "in_folder": "pennon.ops.index.create",
    "merge_parts": "pennon.ops.index.parts",
    "check_name": "pennon.ops.index.create",
    "commit_segments": "pennon.ops.index.create",
    "create_index": "pennon.ops.index.create",
    "drop_index": "pennon.ops.index.drop",
    "fragments_of": "pennon.ops.index.create",
    "merge_segments": "pennon.ops.index.create",
    "optimize_indices": "pennon.ops.index.optimize",
    "plan_index": "pennon.ops.index.create",
    "is_scalar_kind": "pennon.index.kinds",
    "given_arguments": "pennon.ops.index.vector_arguments",
    "is_vector_kind": "pennon.index.kinds",
    "vector_kind": "pennon.ops.index.vector_arguments",
    "load_codes": "pennon.ops.index.vector_steps",
    "plan_codes": "pennon.ops.index.vector_steps",
    "sort_codes": "pennon.ops.index.vector_steps",
    "train_centroids": "pennon.ops.index.vector_steps",
    "train_codebook": "pennon.ops.index.vector_steps",
    "write_codes": "pennon.ops.index.vector_steps",
    "drop_table": "pennon.ops.cleanup.drop",
    "drop_tag": "pennon.ops.versions.refs",
    "find_rows": "pennon.ops.rows.find_rows",
    "make_branch": "pennon.ops.versions.branches",
    "migrate_to_v2": "pennon.table.commit.migrate_naming",
    "move_tag": "pennon.ops.versions.refs",
    "open_version": "pennon.ops.versions.refs",
    "plan_alter": "pennon.ops.columns.alter",
    "remove_rows": "pennon.ops.rows.deletion_vectors",
    "repair_manifest": "pennon.ops.repair",
    "restore": "pennon.ops.versions.branches",
    "rows_at": "pennon.ops.rows.deletion_vectors",
    "survey_of": "pennon.ops.cleanup.run",
    "tag_version": "pennon.ops.versions.refs",
    "tagged_version": "pennon.ops.versions.refs",
    "tags_of": "pennon.ops.versions.refs",
    "tracked_files": "pennon.ops.cleanup.inventory",
    "truncate": "pennon.ops.rows.delete",
    "update": "pennon.ops.rows.update",
    "update_columns": "pennon.ops.columns.update",
    "update_config": "pennon.ops.columns.settings",
    "update_field_metadata": "pennon.ops.columns.settings",
    "update_schema_metadata": "pennon.ops.columns.settings",
    "update_table_metadata": "pennon.ops.columns.settings",
}

__getattr__ = _lazy_names(__name__, _HOMES.keys(), _HOMES)
