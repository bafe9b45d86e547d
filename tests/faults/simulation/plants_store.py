"""Bugs of readers, clean-up, the external manifest store, and names."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from pennon.errors import (
    AlreadyExistsError,
    FormatError,
    RetryableConflict,
    StoreError,
)
from pennon.ops.cleanup import policy
from pennon.ops.cleanup.plan import make_plan, old_versions
from pennon.ops.cleanup.run import _delete, _remove
from pennon.ops.cleanup.survey import Survey
from pennon.table.commit.migrate_naming import copy_newest
from pennon.table.commit.put_manifest import verify_latest
from pennon.table.external.finish import _finished_by_another, finish_with
from pennon.table.external.manifests import Entry, new_staging_path
from pennon.table.external.store import GrantedVersions
from pennon.table.named_files_wire import Names
from pennon.table.refs.files import serialize_tag
from pennon.table.refs.tags_and_branches import create_tag, tag_path
from pennon.table.versions import ManifestLocation, latest_location
from tests.faults.simulation import seams
from tests.faults.simulation.planting import LOST, plant, swap
from tests.faults.simulation.store import Fault

# --- reading ------------------------------------------------------------------------------------------


@plant("1.1: the newest version is what a hint says, which is some seconds old")
def the_hint_is_believed(stack: ExitStack) -> None:
    seen: dict[str, tuple[float, ManifestLocation]] = {}

    def hinted(store: Any, **_: object) -> ManifestLocation:
        actor = seams.current()
        now = 0.0 if actor is None else actor.monotonic()
        when, location = seen.get(store.uri, (-100.0, None))
        if location is None or now - when > 5.0 or now < when:
            location = latest_location(store)
            seen[store.uri] = now, location
        return location

    swap(stack, latest_location, hinted)


# --- clean-up -----------------------------------------------------------------------------------------


@plant("U39, T13: clean-up takes the files of who has not committed yet", cleans=True)
def clean_up_takes_young_files(stack: ExitStack) -> None:
    stack.enter_context(patch.object(policy, "ORPHAN_AGE", timedelta(0)))


@plant(
    "U11: clean-up does not know that versions name deletion files",
    kinds=("delete", "update"),
    cleans=True,
)
def clean_up_forgets_a_kind(stack: ExitStack) -> None:
    known = Names.may_name

    def may_name(self: Names, path: str) -> bool:
        return not path.startswith("_deletions/") and known(self, path)

    stack.enter_context(patch.object(Names, "may_name", may_name))


@plant("T13: clean-up takes versions that tags name", cleans=True, names=True)
def clean_up_forgets_tags(stack: ExitStack) -> None:
    look = Survey.look
    stack.enter_context(patch.object(Survey, "look", lambda self: replace(look(self), tags={})))


@plant(
    "1.8 (7): clean-up takes the files of branches",
    cleans=True,
    names=True,
    kinds=("overwrite", "compact"),
)
def clean_up_forgets_branches(stack: ExitStack) -> None:
    look = Survey.look

    def blind(self: Survey) -> Any:
        return replace(look(self), children={}, others={})

    stack.enter_context(patch.object(Survey, "look", blind))


@plant(
    "1.8: clean-up takes files first, and their manifests after",
    cleans=True,
    kinds=("overwrite", "compact"),
)
def clean_up_takes_files_first(stack: ExitStack) -> None:
    def files_first(survey: Any, plan: Any, pace: Any, mine: str) -> Any:
        _delete(survey.home, plan.files, pace)
        return _remove(survey, plan, pace, mine)

    swap(stack, _remove, files_first)


@plant("1.8: clean-up takes the newest version, if it is old", cleans=True)
def clean_up_takes_the_newest(stack: ExitStack) -> None:
    def all_old(view: Any, chosen: Any, _handle: int, now: Any) -> set[int]:
        old: set[int] = chosen.old(view.stored(), now)
        return old

    swap(stack, old_versions, all_old)


@plant("1.8 (1): clean-up judges by its own clock", cleans=True, skewed=True, pauses=True)
def clean_up_believes_its_clock(stack: ExitStack) -> None:
    from datetime import UTC, datetime

    def by_own_clock(survey: Any, view: Any, chosen: Any, handle: int, now: Any) -> Any:
        actor = seams.current()
        mine = now if actor is None else datetime.fromtimestamp(actor.time(), UTC)
        return make_plan(survey, view, chosen, handle, mine)

    swap(stack, make_plan, by_own_clock)


@plant("1.1: a tag is looked for, and written then", names=True)
def two_make_one_tag(stack: ExitStack) -> None:
    def create(store: Any, name: str, tag: Any) -> None:
        if tag_path(name) in dict(store.list_names("_refs/tags")):
            message = f"tag {name} exists"
            raise AlreadyExistsError(message)
        store.put(tag_path(name), serialize_tag(tag))

    swap(stack, create_tag, create)


# --- the external manifest store ----------------------------------------------------------------------


@plant(
    "1.7: any error of the manifest store is a conflict, and the staged copy goes",
    mode="external",
    faults=LOST,
)
def grant_error_is_a_conflict(stack: ExitStack) -> None:
    def create(self: GrantedVersions, version: int, path: str, data: bytes) -> None:
        entry = Entry(version, new_staging_path(path), len(data))
        self.store.put(entry.path, data)
        try:
            self.manifests.put_if_not_exists(entry)
        except (StoreError, AlreadyExistsError):
            self.store.delete(entry.path)
            message = "the version is taken"
            raise AlreadyExistsError(message) from None
        finish_with(self.store, self.manifests, entry, data)

    stack.enter_context(patch.object(GrantedVersions, "create", create))


@plant("U6: a commit whose finish fails is a conflict", mode="external", faults=LOST)
def finish_error_is_a_conflict(stack: ExitStack) -> None:
    granted = GrantedVersions.create

    def create(self: GrantedVersions, version: int, path: str, data: bytes) -> None:
        granted(self, version, path, data)
        entry = self.manifests.get(version)
        if entry is not None and entry.path != path:
            message = "the version is not finished"
            raise RetryableConflict(message)

    stack.enter_context(patch.object(GrantedVersions, "create", create))


@plant(
    "1.7: nobody finishes what a dead writer left", mode="external", faults={Fault.DIE_BEFORE: 0.1}
)
def half_done_commits_are_not_finished(stack: ExitStack) -> None:
    stack.enter_context(patch.object(GrantedVersions, "finish_newest", lambda _: None))


@plant("U4: a staged copy that another finished meanwhile is an error", mode="external", faults={})
def finished_by_another_is_an_error(stack: ExitStack) -> None:
    def fail(_store: Any, _manifests: Any, entry: Entry) -> Entry:
        message = f"{entry.path} is gone"
        raise FormatError(message)

    swap(stack, _finished_by_another, fail)


@plant("T27: an older version is finished over a newer one", mode="external")
def finished_under_the_wrong_name(stack: ExitStack) -> None:
    def careless(store: Any, manifests: Any, entry: Entry, body: bytes) -> Entry:
        done = finish_with(store, manifests, entry, body)
        newest = manifests.get_latest()
        if newest is not None and newest.version > entry.version:
            store.put(newest.path, body)
        return done

    swap(stack, finish_with, careless)


@plant("T27: the final manifest is written before the version is granted", mode="external")
def final_before_grant(stack: ExitStack) -> None:
    def create(self: GrantedVersions, version: int, path: str, data: bytes) -> None:
        self.store.put(path, data)
        self.store.put(f"{path}-early", data)
        self.manifests.put_if_not_exists(Entry(version, f"{path}-early", len(data)))
        self.manifests.put_if_exists(Entry(version, path, len(data)))

    stack.enter_context(patch.object(GrantedVersions, "create", create))


# --- naming -------------------------------------------------------------------------------------------


@plant("1.1: a writer goes on under old names beside new ones", migrates=True, kinds=("append",))
def names_are_mixed(stack: ExitStack) -> None:
    swap(stack, copy_newest, lambda _store, newest: newest)
    swap(stack, verify_latest, lambda *_: True)
