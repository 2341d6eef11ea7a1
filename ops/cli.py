"""The `branchline` command."""

import sys
from typing import Any

import click

from branchline.kafka.errors import BranchlineError
from branchline.ops.consume import consume
from branchline.ops.dead_letters import dead_letters
from branchline.ops.demo import demo
from branchline.ops.machine import doctor, setup
from branchline.ops.output import exit_code, say, show_error
from branchline.ops.publish import publish
from branchline.ops.run import router, up
from branchline.ops.status import status
from branchline.ops.subscribing import subscribe, subscriptions, unsubscribe

EXIT_INTERRUPTED = 130


class Commands(click.Group):
    """Turns our errors into a message, a hint and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BranchlineError as error:
            show_error(error, as_json="--json" in sys.argv[1:])
            ctx.exit(exit_code(error))
        except (KeyboardInterrupt, click.Abort):
            say("interrupted")
            ctx.exit(EXIT_INTERRUPTED)

    def list_commands(self, ctx: click.Context) -> list[str]:
        # In the order in which somebody meets them, not by the alphabet.
        return list(self.commands)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `branchline up` in one terminal; then, in another: "
    'branchline subscribe alice "price < 100"  and  branchline publish \'{"price": 42}\'',
)
@click.version_option(package_name="branchline")
def main() -> None:
    """Branchline: each subscriber gets exactly the events its filter matches, in a topic of its own.

    \b
    Exit codes: 0 done; 1 a check or job failed; 2 wrong usage or setting; 3 this machine lacks
    something; 4 Kafka or a topic is not there; 5 refused; 6 deadline passed; 7 checkpoint differs.
    """


for command in (
    up,
    router,
    publish,
    subscribe,
    unsubscribe,
    subscriptions,
    consume,
    dead_letters,
    status,
    doctor,
    setup,
    demo,
):
    main.add_command(command)
