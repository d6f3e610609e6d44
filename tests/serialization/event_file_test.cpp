#include "serialization/event_file.hpp"

#include <doctest/doctest.h>

#include <random>

#include "core/hash.hpp"
#include "tests/contains.hpp"
#include "tests/serialization/events.hpp"
#include "tests/serialization/faulty_files.hpp"
#include "tests/serialization/random_values.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::testing;
using troupe::test::contains;

namespace {

// value { tag: "a" histo { bucket_limit: 1.0 } }, and the like.
std::string field(int number, const std::string& bytes) {
  return std::string(1, char(number << 3 | 2)) + char(bytes.size()) + bytes;
}
std::string summary_value(const std::string& fields) { return field(1, field(1, "a") + fields); }

}  // namespace

TEST_CASE("an event file begins with its version, and has each event under its step") {
  TemporaryDir dir;
  double now = 1'700'000'000.5;
  auto file = EventFile::create(dir.path("logs/run"), 3, disk(), [&] { return now; });
  REQUIRE_MESSAGE(file.ok(), file.status().text());
  now += 1;
  REQUIRE((*file)->add_scalars(7, {{"loss", 0.25}, {"rate", 1e-3}}).ok());
  REQUIRE((*file)->add_summary(8, summary_value("")).ok());
  REQUIRE((*file)->add_graph("graph").ok());
  REQUIRE((*file)->add_run(9, "step 9", "metadata").ok());
  REQUIRE((*file)->flush().ok());
  const auto events = read_events(dir.path("logs/run"));
  REQUIRE(events.size() == 6);
  CHECK(events[0].version == "brain.Event:2");
  CHECK(events[0].wall == 1'700'000'000.5);
  CHECK(events[1].start);
  CHECK(events[1].step == 3);
  CHECK(events[2].wall == 1'700'000'001.5);
  CHECK(events[2].step == 7);
  CHECK(events[2].scalars() == std::map<std::string, float>{{"loss", 0.25f}, {"rate", 1e-3f}});
  CHECK(events[3].tags() == std::vector<std::string>{"a"});
  CHECK(events[4].graph == "graph");
  CHECK(events[5].run_tag == "step 9");
  CHECK(events[5].run == "metadata");
  const std::string name = dir.names("logs/run").at(0);
  CHECK(name.starts_with("events.out.tfevents.1700000000."));
}

TEST_CASE("a later event file sorts behind all earlier ones, whatever the clock says") {
  TemporaryDir dir;
  std::vector<std::string> made;
  dir.write("events.out.tfevents.1700000007.elsewhere.1.0", "");
  dir.write("events.out.tfevents.not-a-number", "");
  dir.write("events.out.tfevents.99999999999999999999.far", "");
  dir.write("notes.txt", "");
  for (const double now : {1.7e9, 1.7e9, 1.6e9, -5.0}) {
    auto file = EventFile::create(dir.path(), {}, disk(), [&] { return now; });
    REQUIRE(file.ok());
    made.push_back((*file)->path());
  }
  CHECK(contains(made[0], "tfevents.1700000008."));
  CHECK(std::is_sorted(made.begin(), made.end()));
}

TEST_CASE("what would keep readers from a file is refused, and the file goes on") {
  TemporaryDir dir;
  auto file = EventFile::create(dir.path());
  REQUIRE(file.ok());
  const auto eight = std::string(8, '\0');
  for (const std::string& good :
       {std::string(), summary_value(""), summary_value(field(5, field(6, eight))),
        summary_value(field(8, field(8, "\xff"))), summary_value(field(4, field(4, "\xff"))),
        std::string("\x50\x01")})
    CHECK_MESSAGE(check_summary(good).ok(), check_summary(good).text());
  for (const std::string& bad :
       {std::string("garbage"), std::string("\x0a\x05"), field(1, field(1, "\xff")),
        summary_value(field(5, field(6, "1234567"))), summary_value(field(8, field(10, "\xff"))),
        summary_value(field(9, field(2, "\xff"))), summary_value(field(9, field(1, "\x0a\x7f"))),
        summary_value(field(8, field(2, field(2, field(2, "\xff"))))),
        summary_value(field(4, "\x22\x01\xff\x0a")), summary_value(field(8, field(14, "\x0a\x7f"))),
        summary_value(field(8, field(15, field(1, "\xff")))), std::string("\x00\x00", 2),
        std::string("\x0b"), std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")}) {
    CHECK((*file)->add_summary(1, bad).code() == Code::invalid_argument);
  }
  CHECK((*file)->add_scalars(1, {{"", 1}}).code() == Code::invalid_argument);
  CHECK((*file)->add_scalars(1, {{"good", 1}, {"\xff", 1}}).code() == Code::invalid_argument);
  REQUIRE((*file)->add_scalars(2, {{"loss", 1}}).ok());
  const auto events = read_events(dir.path());
  REQUIRE(events.size() == 2);
  CHECK(events[1].step == 2);
}

TEST_CASE("summaries of random bytes are refused or written, and end nothing") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Random random(seed);
  const std::string whole = summary_value(field(5, field(6, std::string(16, '\1')))) +
                            summary_value(field(9, field(1, field(1, "text"))));
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = whole;
    for (std::uint64_t n = random.below(4); n > 0; --n)
      bytes[random.below(bytes.size())] = char(random.below(256));
    bytes.resize(random.below(bytes.size() + 1));
    const Status checked = check_summary(bytes);
    CHECK((checked.ok() || checked.code() == Code::invalid_argument));
  }
}

TEST_CASE("a folder that cannot be made, and a full disk, are errors with the path") {
  TemporaryDir dir;
  dir.write("file", "");
  const auto refused = EventFile::create(dir.path("file/logs"));
  CHECK_FALSE(refused.ok());
  CHECK(contains(refused.status().message(), "file"));
  FaultyFiles files(1);
  REQUIRE(files.make_dirs("d").ok());
  for (int call = 0; call < 5; ++call) {
    files.fail_at(files.calls() + call);
    const auto full = EventFile::create("d", 1, files);
    CHECK(files.failed());
    CHECK(full.status().code() == Code::resource_exhausted);
    CHECK(read_events("d", files).empty());
    CHECK(files.list("d")->empty());
  }
}
