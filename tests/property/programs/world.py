"""A random program as it runs: the table, its model, and the reads of both libraries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pyarrow as pa

import pennon
from pennon.errors import ConflictError, LanceError
from tests.interop.oracle import OracleError
from tests.property.programs import steps
from tests.property.programs.child import Pylance
from tests.property.programs.generate import Surroundings
from tests.property.programs.indices import VECTORS, is_right, random_questions
from tests.property.programs.known import (
    Asked,
    Situation,
    known_answer,
    known_of,
    misread_filter,
    refusal_of,
)
from tests.property.programs.lines import (
    DisagreementError,
    Held,
    Line,
    Plan,
    RefusedError,
)
from tests.property.programs.model import (
    Effect,
    NotApplicableError,
    Numbers,
    State,
    can_follow,
    effect,
    evolve,
    follow,
    keys_alone,
    made_state,
    text_of,
    with_index,
    without_index,
)
from tests.property.programs.seen import fit, is_same, random_queries, show
from tests.property.programs.steps import Dimensions, Step

ROWS = ("append", "delete", "update", "merge")
INDICES = {"index": with_index, "unindex": without_index}
COLUMNS = ("add_sql", "add_data", "add_nulls", "drop", "rename", "nullable", "cast")


@dataclass(slots=True)
class World:
    """One program."""

    uri: str
    dimensions: Dimensions
    pylance: Pylance
    rng: Random
    lines: dict[str | None, Line] = field(default_factory=dict)
    tags: dict[str, tuple[str | None, int]] = field(default_factory=dict)
    held: dict[int, Held] = field(default_factory=dict)
    numbers: Numbers = field(default_factory=Numbers)
    past: list[Step] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    """How often what happened, for reports."""

    def surroundings(self) -> Surroundings:
        """Return what the next step may refer to."""
        parents = {line.left_from[0] for line in self.lines.values() if line.left_from}
        tagged = {name for name, _ in self.tags.values()}
        return Surroundings(
            self.dimensions,
            {name: line.head for name, line in self.lines.items()},
            {name: sorted(line.states) for name, line in self.lines.items()},
            {number: (held.line, held.base) for number, held in self.held.items()},
            list(self.tags),
            [name for name in self._branches() if name not in parents | tagged],
        )

    # --- steps ------------------------------------------------------------------------------------

    def run(self, step: Step) -> Step:
        """Do a step and compare; returns it as it was done."""
        if step.op == "create":
            return self._create(step)
        if step.line not in self.lines or (
            step.handle is not None and step.handle not in self.held
        ):
            raise NotApplicableError(step.op)
        if step.op == "hold":
            return self._hold(step)
        line = self.lines[step.line]
        held = None if step.handle is None else self.held[step.handle]
        base = line.head if held is None or held.version == line.newest else held.base
        plan = self._plan(step, base, line)
        skips = held is not None and line.lacks_since(held.version)
        situation = Situation(step, base, line.head, self.dimensions, skips, self.past)
        known = known_of(situation)
        if step.library == "pylance" and known is not None:
            self.done[f"known of pylance: {known.name}"] += 1
            step = replace(step, library="pennon")
        try:
            counts = self._do(situation, step, plan)
        except RefusedError:
            plan, counts = Plan([line.head]), None
        else:
            self._note_references(step)
            self.past.append(step)
        if step.op == "unbranch":
            return step
        self._look(step, line, plan, counts)
        if step.op == "clone":
            name = step.args["name"]
            self._begin(replace(step, line=name), line.states[step.args["version"]])
        return step

    def _begin(self, step: Step, state: State) -> None:
        """Look at a table that was made, and begin its line."""
        line = self.lines[step.line] = Line({0: state})
        self._look(step, line, Plan([state]), None)
        line.states = {line.newest: line.head}

    def _create(self, step: Step) -> Step:
        state = made_state(step, self.numbers)
        if step.library == "pennon":
            steps.create(pennon, self.uri, self.dimensions, step)
        else:
            self._ask_pylance("creates", "create", self.uri, self.dimensions, step)
        self._begin(step, state)
        return step

    def _hold(self, step: Step) -> Step:
        number = step.args["number"]
        ours = steps.open_line(pennon, self.uri, step.line)
        self._ask_pylance("opens", "hold", self.uri, step.line, number)
        line = self.lines[step.line]
        self.held[number] = Held(step.line, line.newest, line.head, ours)
        return step

    def _plan(self, step: Step, base: State, line: Line) -> Plan:
        head = line.head
        late = base is not head
        cleaned = step.handle is not None and self.held[step.handle].cleaned
        if step.op in ROWS:
            return self._plan_rows(step, base, head, may_fail=late or cleaned)
        if step.op in COLUMNS:
            return self._plan_columns(step, base, head, may_fail=late or cleaned)
        if step.op == "compact":
            return Plan([replace(head, ordered=False)], may_fail=late or cleaned)
        if step.op == "overwrite":
            return Plan([made_state(step, self.numbers)])
        if step.op == "restore":
            if step.args["version"] not in line.states:
                raise NotApplicableError("version")
            return Plan([line.states[step.args["version"]]])
        if step.op in INDICES:
            return self._plan_index(step, base, head, may_fail=late or cleaned)
        if step.op == "cluster":
            for name in step.args["columns"]:
                head.column(name)
            return Plan([replace(head, ordered=False)])
        self._check_references(step)
        return Plan([head], may_fail=late or cleaned)

    def _plan_columns(self, step: Step, base: State, head: State, *, may_fail: bool) -> Plan:
        evolve(step, base, Numbers())
        try:
            return Plan([evolve(step, head, self.numbers)], may_fail=may_fail)
        except NotApplicableError:
            return Plan([], may_fail=True)

    def _plan_index(self, step: Step, base: State, head: State, *, may_fail: bool) -> Plan:
        do = INDICES[step.op]
        do(step, base, base)
        try:
            return Plan([do(step, base, head)], may_fail=may_fail)
        except NotApplicableError:
            return Plan([], may_fail=True)

    def _plan_rows(self, step: Step, base: State, head: State, *, may_fail: bool) -> Plan:
        done = effect(step, base, self.dimensions.version)
        if done.new and self.dimensions.version == "0.1" and base.columns != head.columns:
            raise NotApplicableError("NULLs in columns made meanwhile, which 0.1 does not hold")
        if base is head:
            return self._plan_of(done, head, may_fail=may_fail)
        outcomes, refused = [], done.refused
        if not done.refused and can_follow(base, head, done):
            outcomes.append(follow(head, done, self.numbers))
        try:
            again = effect(keys_alone(step), head, self.dimensions.version)
        except NotApplicableError:
            pass
        else:
            outcomes.append(follow(head, again, self.numbers))
            refused |= again.refused
        return Plan(outcomes, may_fail=True, may_refuse=refused)

    def _plan_of(self, done: Effect, head: State, *, may_fail: bool) -> Plan:
        if done.refused:
            return Plan([head], refused=True)
        return Plan([follow(head, done, self.numbers)], done.counts, may_fail=may_fail)

    def _check_references(self, step: Step) -> None:
        args = step.args
        if step.op in {"tag", "branch", "clone"}:
            source = {"tag": args.get("branch"), "branch": args.get("parent")}.get(step.op)
            if source not in self.lines or args["version"] not in self.lines[source].states:
                raise NotApplicableError("version")
        if step.op == "untag" and args["name"] not in self.tags:
            raise NotApplicableError("tag")
        leaves = set(self.surroundings().leaves) - {step.line}
        if step.op == "unbranch" and args["name"] not in leaves:
            raise NotApplicableError("branch")

    def _note_references(self, step: Step) -> None:
        """Remember tags and branches, and what may be gone after a clean-up."""
        args = step.args
        if step.op == "tag":
            self.tags[args["name"]] = (args["branch"], args["version"])
        elif step.op == "untag":
            del self.tags[args["name"]]
        elif step.op == "branch":
            parent = self.lines[args["parent"]]
            state = parent.states[args["version"]]
            left = args["parent"], args["version"]
            self.lines[args["name"]] = Line({args["version"]: state}, left)
        elif step.op == "unbranch":
            name = args["name"]
            del self.lines[name]
            self.tags = {tag: at for tag, at in self.tags.items() if at[0] != name}
            self.held = {n: held for n, held in self.held.items() if held.line != name}
        elif step.op == "cleanup":
            for held in self.held.values():
                held.cleaned = True

    # --- doing ------------------------------------------------------------------------------------

    def _do(self, situation: Situation, step: Step, plan: Plan) -> Any:
        """Do a step and return what it counts; raises RefusedError if it was, and might be."""
        held = None if step.handle is None else self.held.pop(step.handle)
        where = "late" if plan.may_fail else "done"
        try:
            if step.library == "pylance":
                counts = self.pylance.call("do", self.uri, step)
            else:
                at = steps.open_line(pennon, self.uri, step.line) if held is None else held.ours
                counts = steps.execute(at, step)
        except (LanceError, OracleError) as error:
            known = refusal_of(situation, str(error)) if step.library == "pylance" else None
            if known is None:
                self._judge(step, plan, error, held)
            else:
                self.done[f"known of pylance: {known.name}"] += 1
            self.done[f"{step.library} {step.op} refused"] += 1
            raise RefusedError from error
        except Exception as error:
            message = f"{step}\n{type(error).__name__}: {error}"
            raise DisagreementError("ours fails with an untyped error", message) from error
        if plan.refused:
            raise DisagreementError(f"{step.library} does what it must refuse", repr(step))
        self.done[f"{step.library} {step.op} {where}"] += 1
        return counts

    def _judge(
        self, step: Step, plan: Plan, error: LanceError | OracleError, held: Held | None
    ) -> None:
        """Raise unless a step might fail so."""
        if isinstance(error, OracleError):
            panics = "Panic" in error.kind or error.kind == "Died"
            if (plan.refused or plan.may_fail) and not panics:
                return
            raise DisagreementError(f"pylance fails to {step.op}", f"{step}\n{error}") from error
        changed = held is not None and (
            held.cleaned or held.base.columns != self.lines[held.line].head.columns
        )
        if (
            plan.refused
            or plan.may_refuse
            or (plan.may_fail and (changed or isinstance(error, ConflictError)))
        ):
            return
        message = f"{step}\n{type(error).__name__}: {error}"
        raise DisagreementError(f"ours fails to {step.op}", message) from error

    def _ask_pylance(self, does: str, *call: Any, **named: Any) -> Any:
        return self._answer_of(does, self.pylance.begin(*call, **named))

    def _answer_of(self, does: str, begun: Future[Any]) -> Any:
        try:
            return begun.result()
        except OracleError as error:
            raise DisagreementError(f"pylance fails when it {does}", str(error)) from error

    # --- looking ----------------------------------------------------------------------------------

    def _look(self, step: Step, line: Line, plan: Plan, counts: Any) -> None:
        """Compare what both see with what may be, and remember what is."""
        stable = self.dimensions.stable
        begun = self.pylance.begin("look", self.uri, step.line, stable=stable)
        try:
            dataset = steps.open_line(pennon, self.uri, step.line)
            ours = steps.look(dataset, stable=stable)
        except Exception as error:
            self._answer_of("looks", begun)  # if both fail, then that pylance does says more
            message = f"{step}\n{type(error).__name__}: {error}"
            raise DisagreementError("ours fails when it looks", message) from error
        theirs = self._answer_of("looks", begun)
        for name, mine in ours.items():
            if not is_same(mine, theirs[name]):
                message = f"{step}\n{name}: ours\n{show(mine)}\npylance's\n{show(theirs[name])}"
                raise DisagreementError(f"the two see other {name}", message)
        self._check_references_seen(step, line, ours)
        state = self._find(step, plan.outcomes, ours)
        state = self._with_indices(step, state, set(ours["indices"]))
        wanted = plan.counts
        if counts is not None and wanted is not None and counts != wanted:
            message = f"{step}\ncounts {counts}, should be {wanted}"
            raise DisagreementError(f"{step.library} counts otherwise", message)
        before = line.head
        for version in range(line.newest + 1, ours["version"]):
            line.states[version] = before
        line.states[ours["version"]] = state
        self._ask_both(dataset, state, ours["rows"])

    def _with_indices(self, step: Step, state: State, seen: set[str]) -> State:
        """Return the state without the indices of vectors that went with the last rows they cover."""
        left = tuple(i for i in state.indices if i.name in seen or i.kind not in VECTORS)
        if {index.name for index in left} != seen:
            message = f"{step}\n{sorted(seen)}, should be {[index.name for index in state.indices]}"
            raise DisagreementError("indices are others", message)
        return replace(state, indices=left)

    def _branches(self) -> list[str]:
        return sorted(name for name in self.lines if name and not steps.is_clone(name))

    def _check_references_seen(self, step: Step, line: Line, seen: dict[str, Any]) -> None:
        """Compare versions, tags and branches."""
        clone = steps.is_clone(step.line)
        if clone:
            seen = {**seen, "tags": self.tags, "branches": self._branches()}
        if seen["tags"] != self.tags:
            message = f"{step}\n{seen['tags']}, should be {self.tags}"
            raise DisagreementError("tags are others", message)
        branches = self._branches()
        if seen["branches"] != branches:
            message = f"{step}\n{seen['branches']}, should be {branches}"
            raise DisagreementError("branches are others", message)
        kept = set(seen["versions"])
        must = {version for name, version in self.tags.values() if name == step.line}
        must.add(seen["version"])
        if step.library == "pennon":  # pylance's clean-up keeps their files only
            left = {branch.left_from for branch in self.lines.values() if branch.left_from}
            must |= {v for name, v in left if name == step.line and v in line.states}
        if step.op != "cleanup":
            must |= set(line.states) - {0}
        if not must <= kept:
            message = f"{step}\n{sorted(kept)} lacks {sorted(must - kept)}"
            raise DisagreementError("versions are gone", message)
        newest = line.newest
        line.states = {v: s for v, s in line.states.items() if v in kept or v == newest}

    def _find(self, step: Step, candidates: Sequence[State], seen: dict[str, Any]) -> State:
        """Return the candidate that was seen."""
        faults = []
        for state in candidates:
            found = fit(state, seen, stable=self.dimensions.stable)
            if isinstance(found, State):
                return found
            faults.append(found)
        message = f"{step}\n" + "\nor: ".join(faults)
        raise DisagreementError(f"the model is another after {step.op} by {step.library}", message)

    def _ask_both(self, dataset: Any, state: State, rows: pa.Table) -> None:
        """Compare answers to a few queries with what the scan found."""
        queries = random_queries(self.rng, state, rows, self.dimensions.version)
        if self.dimensions.indexed:
            queries = random_questions(self.rng, state)
        begun = self.pylance.begin("ask", [query for query, _ in queries])
        answers = [_answer(dataset, query) for query, _ in queries]
        theirs = self._answer_of("answers", begun)
        for (query, wanted), ours, their in zip(queries, answers, theirs, strict=True):
            if isinstance(ours, Exception):
                message = f"{query}\n{type(ours).__name__}: {ours}"
                raise DisagreementError(f"ours fails to answer: {query[0]}", message) from ours
            tree = next((part for part in query[1:] if isinstance(part, tuple)), ("constant", 1))
            misread = misread_filter(tree, state, self.dimensions)
            for name, answer in (("ours", ours), ("pylance", wanted if misread else their)):
                if is_right(query, answer, wanted) or is_same(answer, wanted):
                    continue
                asked = Asked(query, state, self.dimensions, self.past)
                known = known_answer(asked, answer) if name == "pylance" else None
                if known is not None:
                    self.done[f"known of pylance: {known.name}"] += 1
                else:
                    message = f"{query}\n{show(answer)}\nshould be\n{show(wanted)}"
                    raise DisagreementError(f"{name} answers wrongly: {query[0]}", message)

    def check_old_versions(self) -> None:
        """Compare some versions that are still there, and all that have tags."""
        points: list[tuple[str, Any, State]] = [
            (self.uri, tag, self.lines[name].states[version])
            for tag, (name, version) in self.tags.items()
        ]
        for name, line in self.lines.items():
            some = self.rng.sample(sorted(line.states), min(6, len(line.states)))
            uri, branch = steps.place_of(self.uri, name), None if steps.is_clone(name) else name
            points += [(uri, (branch, version), line.states[version]) for version in some]
        begun = [self.pylance.begin("rows_at", uri, point) for uri, point, _ in points]
        for (uri, point, state), looking in zip(points, begun, strict=True):
            try:
                ours = pennon.dataset(uri).checkout_version(point).to_table()
            except Exception as error:
                message = f"{point}\n{type(error).__name__}: {error}"
                raise DisagreementError("ours fails when it looks back", message) from error
            theirs = self._answer_of("looks back", looking)
            wanted = [state.named(row) for row in state.rows.values()]
            for library, rows in (("ours", ours), ("pylance", theirs)):
                if sorted(map(text_of, rows.to_pylist())) != sorted(map(text_of, wanted)):
                    message = f"{point}\n{rows.to_pylist()}\nshould be\n{wanted}"
                    raise DisagreementError(f"{library}: an old version changed", message)


def _answer(dataset: Any, query: tuple[Any, ...]) -> Any:
    """Return our answer to a query, or the error."""
    try:
        return steps.ask(dataset, query)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        return error
