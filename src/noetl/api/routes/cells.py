"""Where objects are: the cells, and the placement that everybody's keys must have."""

import msgspec
from starlette.responses import Response

from noetl.api.route import Asked, Nothing, get
from noetl.domain.naming.cells import CellDirectory

CACHE_SECONDS = 300
"""Cells change when a server starts anew; a reader may know an older list for a while."""


async def listed(asked: Asked[Nothing, Nothing]) -> Response:
    services = asked.services
    directory = CellDirectory(placement=services.placement, cells=services.cells.cells)
    return Response(
        msgspec.json.encode(directory),
        media_type="application/json",
        headers={"Cache-Control": f"private, max-age={CACHE_SECONDS}"},
    )


ROUTES = (
    get("/api/internal/cells", "Cells and the placement of keys", listed, gives=CellDirectory),
)
