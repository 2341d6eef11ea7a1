"""A file of named clusters is read, or refused with what is wrong."""

from pathlib import Path

import pytest

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError
from branchline.ops.clusters import named, read_clusters


def test_clusters_are_read_with_their_properties(tmp_path: Path) -> None:
    (tmp_path / "dublin.properties").write_text("security.protocol=SSL\n")
    file = tmp_path / "clusters.toml"
    file.write_text(
        '[dublin]\nbootstrap = "d:9092"\nclient_properties = "dublin.properties"\n'
        '[virginia]\nbootstrap = "v:9092"\n'
    )
    clusters = read_clusters(file)
    assert clusters == {
        "dublin": Cluster("d:9092", {"security.protocol": "SSL"}),
        "virginia": Cluster("v:9092"),
    }
    assert named(clusters, "virginia", file).bootstrap == "v:9092"
    with pytest.raises(ConfigError, match="no cluster 'paris'") as refused:
        named(clusters, "paris", file)
    assert "dublin, virginia" in refused.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "no toml",
        "[Dublin]\nbootstrap = 'd:9092'",
        "[dublin]",
        "[dublin]\nbootstrap = 9092",
        "[dublin]\nbootstrap = 'd:9092'\nport = 'x'",
        "dublin = 'd:9092'",
        "[dublin]\nbootstrap = 'd:9092'\nclient_properties = 'missing'",
    ],
)
def test_what_is_wrong_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "clusters.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_clusters(file)
    assert refused.value.hint
