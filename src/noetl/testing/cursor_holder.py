"""A process that claims rows, tells its transaction, and holds on until it is killed.

python -m noetl.testing.cursor_holder '{"factory": …, "arguments": …, "ending": …}' '<request>'
"""

import asyncio
import importlib
import json
import sys

import msgspec

from noetl.ports.cursor import ClaimRequest


async def hold(asked: str, request: str) -> None:
    told = json.loads(asked)
    module, _, name = told["factory"].partition(":")
    cursor = getattr(importlib.import_module(module), name)(**told["arguments"])
    async with cursor.claim(msgspec.json.decode(request, type=ClaimRequest)) as claim:
        if told["ending"] == "commit":
            await claim.commit()
        print(claim.transaction, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(hold(*sys.argv[1:]))
