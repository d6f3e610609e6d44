#include "actors/master/dataset_places.hpp"

#include <doctest/doctest.h>

#include <random>

#include "core/hash.hpp"

using namespace troupe;

namespace {

using Shares = std::vector<DatasetPlaces::Share>;
using Elements = DatasetPlaces::Elements;

const DatasetName kData{"", "data"}, kOtherData{"mine", "other"};
const Shares kOne = {{kData, 1}}, kTwo = {{kData, 2}}, kBoth = {{kData, 2}, {kOtherData, 1}};

}  // namespace

TEST_CASE("runs take the elements of a dataset in the order in which they start") {
  DatasetPlaces places;
  CHECK(places.take(kOne) == Elements{{0}});
  CHECK(places.take(kTwo) == Elements{{1, 2}});
  CHECK(places.take(kBoth) == Elements{{3, 4}, {0}});
  CHECK(places.take({}).empty());
  CHECK(places.held() == 6);
}

TEST_CASE("what a run alone fails with is what the next one takes") {
  DatasetPlaces places;
  for (int i = 0; i < 3; ++i) {
    Elements taken = places.take(kTwo);
    CHECK(taken == Elements{{0, 1}});
    places.end(kTwo, taken, false);
    CHECK(places.places().empty());
  }
  CHECK(places.held() == 0);
}

TEST_CASE("a run that fails beside others leaves its elements to the one that starts next") {
  DatasetPlaces places;
  Elements first = places.take(kTwo), second = places.take(kTwo), third = places.take(kOne);
  places.end(kTwo, second, true);
  places.end(kTwo, first, false);
  CHECK(places.places() == std::vector<DatasetPlace>{{kData, 4, {0, 1}}});
  CHECK(places.take(kOne) == Elements{{0}});
  CHECK(places.take(kTwo) == Elements{{1, 5}});
  places.end(kOne, third, false);
  CHECK(places.take(kTwo) == Elements{{4, 6}});
}

TEST_CASE("the place of a dataset counts what ended well and nothing that is under way") {
  DatasetPlaces places;
  Elements first = places.take(kBoth), second = places.take(kOne);
  CHECK(places.places().empty());
  places.end(kOne, second, true);
  CHECK(places.places() == std::vector<DatasetPlace>{{kData, 3, {0, 1}}});
  places.end(kBoth, first, true);
  CHECK(places.places() == std::vector<DatasetPlace>{{kData, 3, {}}, {kOtherData, 1, {}}});
}

TEST_CASE("restored datasets go on where they were, others at their beginning") {
  DatasetPlaces places;
  places.end(kOne, places.take(kOne), true);
  places.restore({{kOtherData, 7, {2, 5}}});
  CHECK(places.places() == std::vector<DatasetPlace>{{kOtherData, 7, {2, 5}}});
  CHECK(places.take(kBoth) == Elements{{0, 1}, {2}});
  CHECK(places.take({{kOtherData, 2}}) == Elements{{5, 7}});
}

TEST_CASE("rewinding a container begins its datasets anew and no others") {
  DatasetPlaces places;
  places.end(kBoth, places.take(kBoth), true);
  places.rewind({"mine"});
  CHECK(places.places() == std::vector<DatasetPlace>{{kData, 2, {}}});
  CHECK(places.take(kBoth) == Elements{{2, 3}, {0}});
}

TEST_CASE("rewinding what a step reads waits for nobody: it is refused while a run reads it") {
  DatasetPlaces places;
  Elements first = places.take(kBoth), second = places.take(kOne);
  CHECK(places.rewind(kBoth).code() == Code::failed_precondition);
  places.end(kBoth, first, true);
  CHECK(places.rewind(kBoth).code() == Code::failed_precondition);
  CHECK(places.rewind({{kOtherData, 1}}).ok());
  places.end(kOne, second, false);
  CHECK(places.places() == std::vector<DatasetPlace>{{kData, 2, {}}});
  CHECK(places.rewind(kOne).ok());
  CHECK(places.take(kBoth) == Elements{{0, 1}, {0}});
  CHECK(places.rewind(Shares{}).code() == Code::invalid_argument);
}

TEST_CASE("a run whose loops take elements holds the dataset until it is known how many it used") {
  const Shares open = {{kData, 2, true}};
  DatasetPlaces places;
  Elements first = places.take(kTwo), second = places.take(kOne);
  places.end(kTwo, first, false);
  CHECK(places.free(open));
  Elements loops = places.take(open);
  CHECK(loops == Elements{{0, 1, 3}});
  CHECK(element_number(loops[0], 1) == 1);
  CHECK(element_number(loops[0], 2) == 3);
  CHECK(element_number(loops[0], 5) == 6);
  CHECK_FALSE(places.free(open));
  CHECK_FALSE(places.free(kBoth));
  CHECK(places.free({{kOtherData, 1}}));
  CHECK(places.held() == 2);
  CHECK(places.rewind(kOne).code() == Code::failed_precondition);
  places.end(kOne, second, false);  // what it leaves is not what the other one was given
  CHECK(places.places().empty());
  places.end(open, loops, true, {4});  // 0, 1, 3, 4
  CHECK(places.free(kBoth));
  CHECK(places.places() == std::vector<DatasetPlace>{{kData, 5, {2}}});
  CHECK(places.take(kTwo) == Elements{{2, 5}});
}

TEST_CASE("a run whose loops took elements and that fails, or took none, leaves all of them") {
  const Shares open = {{kData, 3, true}};
  DatasetPlaces places;
  for (auto [used, count] : {std::pair{false, 6}, {true, 0}, {true, 0}}) {
    Elements loops = places.take(open);
    CHECK(loops == Elements{{0}});
    places.end(open, loops, used, {std::uint64_t(count)});
    CHECK(places.places().empty());
  }
  places.end(open, places.take(open), true, {3});
  CHECK(places.places() == std::vector<DatasetPlace>{{kData, 3, {}}});
  CHECK(places.take(kOne) == Elements{{3}});
  CHECK(places.held() == 1);
}

TEST_CASE("places that go on elsewhere give the same elements, and hostile bytes none") {
  const std::uint64_t first_seed = std::random_device{}();
  int refused = 0, read = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + 200; ++seed) {
    INFO("seed " << seed);
    Random random(mix64(seed));
    DatasetPlaces places, other;
    std::vector<std::pair<Shares, Elements>> held;
    for (std::uint64_t n = random.below(30); n > 0; --n) {
      const Shares& shares = random.below(2) == 0 ? kTwo : kBoth;
      if (held.size() < 3 && random.below(2) == 0) {
        held.emplace_back(shares, places.take(shares));
      } else if (!held.empty()) {
        const auto [taken, elements] = held.front();
        held.erase(held.begin());
        places.end(taken, elements, random.below(3) > 0);
      }
    }
    const ResourceState state = places.save();  // without what runs under way have taken
    REQUIRE(other.load(value_or_throw(decode_state(*encode_state(state)))).ok());
    for (const auto& [shares, elements] : held) places.end(shares, elements, false);
    CHECK(other.places() == places.places());
    for (int i = 0; i < 5; ++i) CHECK(other.take(kBoth) == places.take(kBoth));
    for (int i = 0; i < 10 && !state.words.empty(); ++i) {
      ResourceState hostile = state;
      hostile.words[random.below(hostile.words.size())] ^= std::byte(1 + random.below(255));
      DatasetPlaces untouched;
      const Status status = untouched.load(hostile);
      CHECK((status.ok() || status.code() == Code::invalid_argument));
      (status.ok() ? read : refused) += 1;
      if (!status.ok()) CHECK(untouched.places().empty());
      for (const DatasetPlace& place : untouched.places()) CHECK(place.possible());
    }
  }
  CHECK(refused > 100);
  CHECK(read > 10);
}
