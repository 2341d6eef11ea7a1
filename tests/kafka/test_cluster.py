"""A cluster's settings are read, translated for Java, and never shown."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka.cluster import PROPERTIES, Cluster, read_properties
from branchline.kafka.errors import ConfigError

SECRET = "hunter2-s3cret"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def written(folder: Path, text: str) -> Path:
    path = folder / "client.properties"
    path.write_text(text, encoding="utf-8")
    return path


def sasl(mechanism: str = "PLAIN", username: str = "alice", password: str = SECRET) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.username": username,
        "sasl.password": password,
    }


# The properties file


def test_comments_blanks_and_spaces_are_passed_over(tmp_path: Path) -> None:
    """A line is `name=value`; a comment stands on its own line, and a value may hold `#` and `=`."""
    text = (
        "# a comment\n\n  # another\n security.protocol = SASL_SSL \nsasl.password=a#b=c==\nsasl.username=\n"
    )
    text += "sasl.mechanism=PLAIN\n"
    assert read_properties(written(tmp_path, text)) == {
        "security.protocol": "SASL_SSL",
        "sasl.password": "a#b=c==",
        "sasl.username": "",
        "sasl.mechanism": "PLAIN",
    }


def test_librdkafkas_other_name_for_the_mechanism_is_known(tmp_path: Path) -> None:
    """`sasl.mechanisms` is read as `sasl.mechanism`."""
    assert read_properties(written(tmp_path, "sasl.mechanisms=PLAIN")) == {"sasl.mechanism": "PLAIN"}


@pytest.mark.parametrize(
    "line",
    [
        f"sasl.pasword={SECRET}",
        f"sasl.password: {SECRET}",
        f"sasl.password {SECRET}",
        f"sasl.password\t{SECRET}",
        f"sasl.pasword:{SECRET}=",
        SECRET,
    ],
)
def test_an_unknown_line_is_refused_without_its_value(tmp_path: Path, line: str) -> None:
    """The error names file and line, and lists what is known, but nothing that may be a secret."""
    path = written(tmp_path, f"security.protocol=SASL_SSL\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        read_properties(path)
    assert f"{path}, line 2" in str(caught.value)
    assert "sasl.password" in caught.value.hint
    assert SECRET not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_every_known_name_is_read(tmp_path: Path, name: str) -> None:
    """What the table of properties lists can stand in a file."""
    text = f"{name}=x\n" + ("sasl.mechanism=PLAIN\n" if name == "sasl.username" else "")
    assert read_properties(written(tmp_path, text))[name] == "x"


@pytest.mark.parametrize("mechanism", ["", "sasl.mechanism=GSSAPI\n", "sasl.mechanism=plain\n"])
def test_a_user_needs_a_mechanism_that_we_know(tmp_path: Path, mechanism: str) -> None:
    """A name without a mechanism, or with one that cannot be translated, is refused when it is read."""
    path = written(tmp_path, f"sasl.username=alice\nsasl.password={SECRET}\n{mechanism}")
    with pytest.raises(ConfigError, match=r"sasl\.mechanism") as caught:
        read_properties(path)
    assert SECRET not in str(caught.value) + caught.value.hint


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A missing file, or one that is not text, is the user's to mend."""
    broken = tmp_path / "broken"
    broken.write_bytes(b"\xff\xfe")
    for path in (tmp_path / "missing", broken):
        with pytest.raises(ConfigError, match=path.name):
            read_properties(path)


# Java's names


@pytest.mark.parametrize(
    ("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)]
)
def test_sasl_becomes_a_login_module(mechanism: str, module: str) -> None:
    """User and password become the JAAS line of the mechanism; protocol and mechanism keep their names."""
    assert Cluster("k:9092", sasl(mechanism)).java() == {
        "bootstrap.servers": "k:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="alice" password="{SECRET}";',
    }


def unquoted(jaas: str) -> list[str]:
    """The quoted values of a JAAS line, read as Java's tokenizer does: a backslash takes what follows."""
    values, value, inside = [], "", False
    characters = iter(jaas)
    for character in characters:
        if character == '"':
            if inside:
                values.append(value)
            value, inside = "", not inside
        elif inside:
            value += next(characters) if character == "\\" else character
    assert not inside
    return values


@given(st.text("ab\"\\;= '{}$", max_size=12), st.text("ab\"\\;= '{}$", max_size=12))
def test_quotes_and_backslashes_in_secrets_are_escaped(username: str, password: str) -> None:
    """Java reads back the user and password as given, whatever they hold, and nothing after them."""
    jaas = Cluster("k:9092", sasl("PLAIN", username, password)).java()["sasl.jaas.config"]
    assert unquoted(jaas) == [username, password]
    assert jaas.endswith('";')


def test_tls_becomes_pem_trust_and_pkcs12_key() -> None:
    """The authority's file is trusted as PEM; a key of one's own is PKCS12 with its password."""
    given_settings = {
        "security.protocol": "SSL",
        "ssl.ca.location": "/etc/ca.pem",
        "ssl.keystore.location": "/etc/me.p12",
        "ssl.keystore.password": SECRET,
    }
    assert Cluster("k:9093", given_settings).java() == {
        "bootstrap.servers": "k:9093",
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/etc/ca.pem",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": "/etc/me.p12",
        "ssl.keystore.password": SECRET,
    }


@pytest.mark.parametrize(("librdkafka", "java"), [("https", "https"), ("none", "")])
def test_the_check_of_host_names_is_switched_off_in_javas_way(librdkafka: str, java: str) -> None:
    """What librdkafka calls `none` is Java's empty text; Java knows no algorithm of that name."""
    cluster = Cluster("k:9093", {"ssl.endpoint.identification.algorithm": librdkafka})
    assert cluster.java()["ssl.endpoint.identification.algorithm"] == java


def test_no_settings_need_no_translation() -> None:
    """A cluster without security is its address alone."""
    assert Cluster("k:9092").java() == {"bootstrap.servers": "k:9092"}


# librdkafka's names


def test_librdkafka_gets_the_properties_as_they_are() -> None:
    """Properties pass through; what the caller sets, with underscores for dots, wins."""
    settings = Cluster("k:9092", sasl()).librdkafka(group_id="g", security_protocol="PLAINTEXT")
    assert settings["bootstrap.servers"] == "k:9092"
    assert settings["group.id"] == "g"
    assert settings["sasl.password"] == SECRET
    assert settings["security.protocol"] == "PLAINTEXT"


# Secrets


def test_no_secret_is_ever_shown() -> None:
    """`repr` and `str` of a cluster show its address and no value of a property."""
    cluster = Cluster("k:9092", sasl() | {"ssl.keystore.password": SECRET})
    for shown in (repr(cluster), str(cluster), f"{cluster}", repr([cluster])):
        assert SECRET not in shown
        assert "k:9092" in shown


def test_equal_clusters_hash_alike() -> None:
    """A cluster can be a key: equal in any order, are one."""
    one, other = Cluster("k:9092", sasl()), Cluster("k:9092", dict(reversed(sasl().items())))
    assert one == other
    assert hash(one) == hash(other)
    assert one != Cluster("k:9092")
