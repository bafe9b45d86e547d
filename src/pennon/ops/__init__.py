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
    from pennon.ops.columns.checkpoint import checkpoint_in as checkpoint_in
    from pennon.ops.columns.column_file import adopt_file as adopt_file
    from pennon.ops.columns.settings import update_config as update_config
    from pennon.ops.columns.settings import update_field_metadata as update_field_metadata
    from pennon.ops.columns.settings import update_schema_metadata as update_schema_metadata
    from pennon.ops.columns.settings import update_table_metadata as update_table_metadata
    from pennon.ops.columns.update import update_columns as update_columns
    from pennon.ops.doctor.examine import examine_snapshot as examine_snapshot
    from pennon.ops.doctor.examine import on_threads as on_threads
    from pennon.ops.embed.embed import EmbedRequest as EmbedRequest
    from pennon.ops.embed.embed import add_embedding as add_embedding
    from pennon.ops.embed.models import given_model as given_model
    from pennon.ops.embed.models import model_of as model_of
    from pennon.ops.embed.refresh import RefreshRequest as RefreshRequest
    from pennon.ops.embed.refresh import refresh_embedding as refresh_embedding
    from pennon.ops.embed.remembered import notes_of as notes_of
    from pennon.ops.embed.search import SearchPlan as SearchPlan
    from pennon.ops.embed.search import SearchRequest as SearchRequest
    from pennon.ops.embed.search import plan_search as plan_search
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
    name: f"pennon.{home}"
    for home, names in {
        "index.kinds": "is_scalar_kind is_vector_kind",
        "ops.base_paths": "add_bases trusting",
        "ops.cleanup.drop": "drop_table",
        "ops.cleanup.inventory": "all_files tracked_files",
        "ops.cleanup.policy": "Policy",
        "ops.cleanup.run": "Pace clean survey_of",
        "ops.columns.alter": "alter_columns drop_columns plan_alter",
        "ops.columns.alterations": "Alteration",
        "ops.columns.column_file": "adopt_file",
        "ops.columns.settings": "update_config update_field_metadata update_schema_metadata update_table_metadata",
        "ops.columns.update": "update_columns",
        "ops.columns.checkpoint": "checkpoint_in",
        "ops.doctor.examine": "examine_snapshot on_threads",
        "ops.embed.embed": "EmbedRequest add_embedding",
        "ops.embed.models": "given_model model_of",
        "ops.embed.refresh": "RefreshRequest refresh_embedding",
        "ops.embed.remembered": "notes_of",
        "ops.embed.search": "SearchPlan SearchRequest plan_search",
        "ops.index.check": "check_indices",
        "ops.index.create": "build_index check_name commit_segments create_index fragments_of in_folder merge_segments plan_index",
        "ops.index.drop": "drop_index",
        "ops.index.optimize": "optimize_indices",
        "ops.index.parts": "build_parts merge_parts",
        "ops.index.vector_arguments": "given_arguments vector_kind",
        "ops.index.vector_steps": "load_codes plan_codes sort_codes train_centroids train_codebook write_codes",
        "ops.repair": "repair_manifest",
        "ops.rows.delete": "delete truncate",
        "ops.rows.deletion_vectors": "remove_rows rows_at",
        "ops.rows.find_rows": "bind_search find_rows",
        "ops.rows.update": "update",
        "ops.source": "as_reader",
        "ops.versions.branches": "branches_of clone_shallow describe_branch drop_branch make_branch restore",
        "ops.versions.deep_clone": "copy_table",
        "ops.versions.refs": "describe_tag drop_tag move_tag open_version tag_version tagged_version tags_of",
        "table.commit.migrate_naming": "migrate_to_v2",
    }.items()
    for name in names.split()
}

__getattr__ = _lazy_names(__name__, _HOMES.keys(), _HOMES)
