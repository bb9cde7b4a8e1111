from odfbuild.odf.model import DatasetKind
from odfbuild.plan.slices import ChainSlices
from tests.plan.worlds import Chain, hash_of


def sizes(chain: Chain, block):
    index = ChainSlices({"Flights": chain.now}, lambda _, name: chain.blocks[name])
    found = index.since("flights", block)
    return None if found is None else [piece.size for piece in found.slices]


def test_slices_come_oldest_first():
    assert sizes(Chain("r", DatasetKind.Root).add(1).add(2).add(3), None) == [10, 20, 30]


def test_slices_of_the_block_itself_are_not_new():
    chain = Chain("r", DatasetKind.Root).add(1)
    block = chain.now.head
    assert sizes(chain.add(2).add(3), block) == [20, 30]


def test_a_block_that_is_not_in_the_chain_means_rewritten():
    assert sizes(Chain("r", DatasetKind.Root).add(1), hash_of("elsewhere")) is None
