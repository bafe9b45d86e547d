"""Write the bill of materials of a default install, as CycloneDX JSON: ``dist/pennon-VERSION.cdx.json``.

It lists the packages that ``pip install pennon`` brings, at the versions of ``requirements/dev.lock``, which
are those that the tests ran with, and what each of them needs.  Wheels and source archives that lie in
``dist/`` are listed with their hashes.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any, TypeAlias

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
Document: TypeAlias = dict[str, Any]
_LICENSE_NAMES = {
    "BSD-3-Clause": "BSD-3-Clause",
    "Apache License 2.0": "Apache-2.0",
    "3-Clause BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
}
"""SPDX names of licenses, by their names in older metadata."""


def main() -> None:
    """Write the document of this tree's version."""
    made = document(ROOT / "dist")
    folder = ROOT / "dist"
    folder.mkdir(exist_ok=True)
    target = folder / f"pennon-{made['metadata']['component']['version']}.cdx.json"
    target.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    print(f"{target.relative_to(ROOT)}: {len(made['components'])} packages")


def document(dist: Path) -> Document:
    """Return the bill of materials; ``dist`` may hold the release's archives."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    direct: list[str] = [
        canonicalize_name(Requirement(each).name) for each in project["dependencies"]
    ]
    needed = closure(direct)
    root = {
        "type": "library",
        "bom-ref": "pennon",
        "name": "pennon",
        "version": release(),
        "description": project["description"],
        "licenses": [{"license": {"id": project["license"]}}],
        "purl": f"pkg:pypi/pennon@{release()}",
        "components": [archive(path) for path in sorted(dist.glob("pennon-*")) if is_archive(path)],
    }
    edges: dict[str, list[str]] = {"pennon": direct, **needed}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": root},
        "components": [component(name) for name in sorted(needed)],
        "dependencies": [
            {"ref": ref(name), "dependsOn": sorted(ref(each) for each in edges[name])}
            for name in sorted(edges)
        ],
    }


def release() -> str:
    """Return the version of this tree, without importing the package."""
    text = (ROOT / "src/pennon/release.py").read_text("utf-8")
    found = re.search(r'^RELEASE: Final = "(.+)"$', text, re.MULTILINE)
    assert found, "src/pennon/release.py has no RELEASE"
    return found[1]


def closure(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the packages that these need, themselves included, and what each of them needs."""
    found: dict[str, list[str]] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = sorted(set(requirements(distribution(name))))
            waiting += found[name]
    return found


def requirements(package: Distribution) -> Iterator[str]:
    """Yield what a package needs on this system, without its extras."""
    for text in package.requires or ():
        need = Requirement(text)
        if need.marker is None or need.marker.evaluate({"extra": ""}):
            yield canonicalize_name(need.name)


def component(name: str) -> Document:
    """Describe one package; its version must be the locked one."""
    package = distribution(name)
    locked = locked_versions()
    if package.version not in locked.get(name, ()):
        sys.exit(f"{name} {package.version} is not what requirements/dev.lock says: run make setup")
    return {
        "type": "library",
        "bom-ref": ref(name),
        "name": name,
        "version": package.version,
        "purl": ref(name),
        "licenses": [license_of(package)],
    }


def ref(name: str) -> str:
    """Return how the document refers to a package."""
    return "pennon" if name == "pennon" else f"pkg:pypi/{name}@{distribution(name).version}"


def license_of(package: Distribution) -> Document:
    """Return a package's license as the document has it: an SPDX expression or name, or what the package says."""
    said = package.metadata.json
    expression = str(said.get("license_expression", ""))
    if " " in expression:
        return {"expression": expression}
    classifiers = package.metadata.get_all("Classifier") or []
    names = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License ::")]
    names.append(str(said.get("license", "")).strip().partition("\n")[0])
    name = expression or next(filter(None, names), "not declared")
    known = expression or _LICENSE_NAMES.get(name)
    return {"license": {"id": known} if known else {"name": name}}


def locked_versions() -> dict[str, list[str]]:
    """Return the versions of each package in the lock file; Python's version may choose among several."""
    found: dict[str, list[str]] = {}
    text = (ROOT / "requirements/dev.lock").read_text("utf-8")
    for name, version in re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE):
        found.setdefault(name, []).append(version)
    return found


def is_archive(path: Path) -> bool:
    """Return whether a file is a wheel or a source archive."""
    return path.name.endswith((".whl", ".tar.gz"))


def archive(path: Path) -> Document:
    """Describe a built archive by its hash."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {
        "type": "file",
        "bom-ref": path.name,
        "name": path.name,
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }


if __name__ == "__main__":
    main()
