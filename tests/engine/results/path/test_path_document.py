"""A path in the document of a run: as its schema says, in milliseconds."""

import json
from dataclasses import replace

from linkgauge.engine.model.directions import Direction
from linkgauge.engine.results.figure_codec import encode
from linkgauge.engine.results.meter import replay
from linkgauge.engine.results.path.hop_judgement import find_path
from linkgauge.engine.results.path.path_document import names_of_routers, path_figures
from linkgauge.engine.results.run_result import RunResult

from .... import json_schemas
from ..responsiveness_runs import Link, steady
from .traced_chain import Chain


def test_the_document_has_both_directions_and_is_as_its_schema_says() -> None:
    """Or null for one that was not traced; without any trace the member is not there."""
    summary = replay(Link(steady(40, 8), local=1.0).events()).summary()
    assert "path" not in encode(RunResult.of_run(summary, run_id="r1"))
    chain = Chain(3, out_ms=((1, 40.0),), silent=(3,), limited=(1,), lossy_link=1)
    path = find_path(chain.traces(), chain.measured(), {"192.0.2.2": "gw"})
    assert path is not None
    for measured in (path, replace(path, ways=path.ways[1:])):
        document = json.loads(json.dumps(encode(RunResult.of_run(replace(summary, path=measured), run_id="r1"))))
        json_schemas.check("run.schema.json", document)
    document = encode(RunResult.of_run(replace(summary, path=path), run_id="r1"))
    way = document["path"][Direction.OUT.value]
    assert [(each["after_hop"], each["before_hop"]) for each in way["queues"]] == [(1, 2)]
    assert [hop["answers"] for hop in way["hops"]] == ["limited", "all", "silent", "all"]
    assert way["hops"][1]["addresses"] == ["192.0.2.3"]
    assert way["hops"][0]["name"] == "gw"
    assert 25 < way["hops"][1]["rise_ms"] < 40
    assert way["hops"][3]["is_end"]
    assert RunResult.of(document).path == RunResult.of_run(replace(summary, path=path)).path


def test_the_names_of_a_document_are_by_the_address_of_their_hop() -> None:
    """A run that is read again shows them without another look-up."""
    names = {"192.0.2.2": "gw", "192.0.2.4": "core"}
    chain = Chain(3, silent=(2,))
    path = find_path(chain.traces(), chain.measured(), names)
    assert path is not None
    assert names_of_routers(path_figures(path)) == names
    assert find_path(chain.traces(), chain.measured(), names_of_routers(path_figures(path))) == path
