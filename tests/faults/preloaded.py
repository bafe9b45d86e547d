"""Modules that a forked process has loaded before it is killed."""

from __future__ import annotations

import importlib
import pkgutil

import botocore.session

import pennon.io.remote_client
import pennon.ops
import pennon.scan
import pennon.table

importlib.import_module("tests.faults.killing")
for package in (pennon.ops, pennon.scan, pennon.table):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)

botocore.session.Session().create_client("dynamodb", region_name="us-east-1")
