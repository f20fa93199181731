"""Our code in one file, from which Python can import it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import noetl
from noetl.spark.shipping import pack_code

CODE = """
import sys
sys.path.insert(0, sys.argv[1])
import importlib.metadata, noetl, noetl.spark.slots
print(noetl.__file__, importlib.metadata.version("noetl"))
"""


def test_code_is_imported_from_the_file(tmp_path: Path) -> None:
    packed = pack_code(tmp_path)
    command = [sys.executable, "-c", CODE, str(packed)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(packed / "noetl" / "__init__.py"), noetl.__version__]


def test_the_same_code_is_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    one, two = pack_code(tmp_path), pack_code(tmp_path / "other")
    assert one.name == two.name
    assert one.read_bytes() == two.read_bytes()
    names = zipfile.ZipFile(one).namelist()
    assert not [name for name in names if "__pycache__" in name or "/testing/" in name]
