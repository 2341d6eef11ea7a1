"""The `branchline` command."""

from typing import Any, NoReturn

import click
from confluent_kafka import KafkaException

from branchline.kafka.errors import BranchlineError, ClusterUnreachable, ConfigError
from branchline.ops.acl import acl
from branchline.ops.advertising import advertise, unadvertise
from branchline.ops.assist import assist
from branchline.ops.bench import bench
from branchline.ops.bridge import bridge
from branchline.ops.chaos.command import chaos
from branchline.ops.compare import compare
from branchline.ops.consume import consume
from branchline.ops.dead_letters import dead_letters
from branchline.ops.demo import demo
from branchline.ops.explain import explain
from branchline.ops.filtering import filter_commands
from branchline.ops.machine import doctor, setup
from branchline.ops.output import JSON_ASKED, exit_code, say, show_error
from branchline.ops.publish import publish
from branchline.ops.rebuild import rebuild
from branchline.ops.refresh import refresh
from branchline.ops.run import optimizer, router, up
from branchline.ops.simulation.simulate import simulate
from branchline.ops.status import status
from branchline.ops.subscribing import renew, subscribe, unsubscribe
from branchline.ops.subscriptions import subscriptions
from branchline.ops.topology import topology

EXIT_INTERRUPTED = 130


class Commands(click.Group):
    """Turns errors into a message, a hint and an exit code: nobody is to read a stack trace."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BranchlineError as error:
            _end(ctx, error)
        except KafkaException as error:
            reason = error.args[0].str() if error.args else str(error)
            _end(ctx, ClusterUnreachable(f"Kafka: {reason}", hint="check the cluster: `branchline doctor`"))
        except OSError as error:
            if error.filename is None:  # a closed pipe is click's to handle
                raise
            reason = f"{error.filename}: {error.strerror}"
            _end(ctx, ConfigError(reason, hint="check the path, its permissions and the free space"))
        except (KeyboardInterrupt, click.Abort):
            say("interrupted")
            ctx.exit(EXIT_INTERRUPTED)

    def list_commands(self, ctx: click.Context) -> list[str]:
        # In the order in which somebody meets them, not by the alphabet.
        return list(self.commands)


def _end(ctx: click.Context, error: BranchlineError) -> NoReturn:
    show_error(error, as_json=ctx.meta.get(JSON_ASKED, False))
    ctx.exit(exit_code(error))


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
    Start with this in one terminal:
      branchline up
    and then, in another:
      branchline subscribe alice "price < 100"
      branchline publish '{"price": 42}'
      branchline consume alice --from-beginning
    """,
)
@click.version_option(package_name="branchline")
def main() -> None:
    """Branchline: each subscriber gets exactly the events its filter matches, in a topic of its own.

    \b
    Exit codes: 0 done; 1 a check or job failed; 2 wrong usage or setting; 3 this machine lacks
    something; 4 Kafka, Spark's master or a topic is not there; 5 refused; 6 deadline passed;
    7 checkpoint differs; 130 interrupted.
    """


for command in (
    up,
    router,
    optimizer,
    bridge,
    publish,
    subscribe,
    renew,
    unsubscribe,
    advertise,
    unadvertise,
    subscriptions,
    consume,
    explain,
    filter_commands,
    dead_letters,
    status,
    topology,
    refresh,
    assist,
    acl,
    doctor,
    setup,
    rebuild,
    demo,
    bench,
    simulate,
    compare,
    chaos,
):
    main.add_command(command)
