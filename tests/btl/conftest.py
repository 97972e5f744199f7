"""What tests of transports share."""

from __future__ import annotations

import pytest
import tcp_ranks


@pytest.fixture(params=["secret", "tls"])
def protection(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The test is done with and without encryption between ranks that are joined by btl/tcp."""
    monkeypatch.setattr(tcp_ranks, "security", request.param)
    return str(request.param)
