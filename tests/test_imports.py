"""What importing a package costs, and that module names are not hidden by functions."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

TORCH_FREE = ["config", "hierarchy", "metrics", "thresholds", "resampling", "diagnosis"]


@pytest.mark.parametrize("package", TORCH_FREE)
def test_these_packages_do_not_import_torch(package: str) -> None:
    code = (
        "import pkgutil, sys, importlib\n"
        f"package = importlib.import_module('rarenode.{package}')\n"
        "for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "    importlib.import_module(module.name)\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"


def test_ray_is_imported_only_where_it_is_wanted() -> None:
    code = (
        "import importlib, pkgutil, sys, rarenode\n"
        "for module in pkgutil.walk_packages(rarenode.__path__, 'rarenode.'):\n"
        "    module.name.endswith('__main__') or importlib.import_module(module.name)\n"
        "from typer.testing import CliRunner\n"
        "from rarenode.cli.app import app\n"
        "for command in ((), ('fit',), ('predict',), ('paper', 'run'), ('paper', 'queue')):\n"
        "    assert CliRunner().invoke(app, [*command, '--help']).exit_code == 0\n"
        "from rarenode.executors import make_executor\n"
        "make_executor('ray')\n"
        "print('ray' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("package", TORCH_FREE)
def test_a_module_is_not_hidden_by_a_function_of_its_name(package: str) -> None:
    found = import_module(f"rarenode.{package}")
    for module in pkgutil.iter_modules(found.__path__):
        import_module(f"{found.__name__}.{module.name}")
        assert isinstance(getattr(found, module.name), ModuleType), module.name
