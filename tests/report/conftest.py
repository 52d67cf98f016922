from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def _all_with_one_thread(one_thread: None) -> None: ...
