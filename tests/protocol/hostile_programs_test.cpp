// Programs from outside that nobody means: graphs with functions and cycles, changed at random as
// values or as bytes, go through everything that takes them, up to the plans that an executor
// loads. Each is refused by a node and its line, or compiles; none brings the process down, hangs
// or grows.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>

#include "graph/compile.hpp"
#include "graph/import.hpp"
#include "graph/passes/variable_homes.hpp"
#include "ops/op.hpp"
#include "tests/protocol/hostile_programs.hpp"
#include "tests/resident.hpp"

namespace troupe::test {
namespace {

Target target_here() {
  Target target;
  target.ops = &ops::builtin().ops;
  target.devices.push_back({*DeviceName::parse("/job:w/task:0/cpu:0")});
  target.devices.push_back({*DeviceName::parse("/job:w/task:1/cpu:0")});
  return target;
}

// All feeds, and some of the nodes.
CompileRequest request_for(const GraphDef& graph, Random& random) {
  CompileRequest request;
  for (const NodeDef& node : graph.nodes)
    if (node.op == "Placeholder") request.feeds.push_back({node.name, 0, false});
  for (int k = 0; k < 4; ++k) {
    const NodeDef& node = graph.nodes[random.below(graph.nodes.size())];
    if (node.op == "Placeholder") continue;
    if (node.out_types.empty() || random.below(2))
      request.targets.push_back(node.name);
    else
      request.fetches.push_back({node.name, int(random.below(node.out_types.size())), false});
  }
  if (!graph.nodes.empty()) request.targets.push_back(graph.nodes.back().name);
  request.replicas = 1 + std::int32_t(random.below(2));
  return request;
}

// The most memory that is resident while something runs. Linux counts it for the process, and
// begins anew when it is told to; where it cannot be told, the most is what it ever was.
class MostResident {
 public:
  MostResident() {
    std::ofstream("/proc/self/clear_refs") << 5;
    before_ = kilobytes("VmRSS:");
  }
  std::uint64_t added() const {
    const std::uint64_t most = kilobytes("VmHWM:");
    return (most - std::min(before_, most)) << 10;
  }

 private:
  static std::uint64_t kilobytes(const std::string& name) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (std::uint64_t n = 0; word == name && status >> n) return n;
    return 0;
  }
  std::uint64_t before_ = 0;
};

struct Ends {
  std::uint64_t no_message = 0, not_imported = 0, not_compiled = 0, compiled = 0;
  std::uint64_t growth = 0;  // bytes
  std::uint64_t most = 0;    // bytes, within one program
  double longest = 0;        // seconds
  std::uint64_t longest_seed = 0, most_seed = 0;
};

// The lines of a program; none where changes to its bytes changed one.
std::set<std::uint32_t> lines_of(const GraphDef& graph) {
  std::set<std::uint32_t> lines;
  bool known = true;
  auto add = [&](const Site& site) {
    known &= site.file == kHostileFile;
    lines.insert(site.line);
  };
  for (const NodeDef& node : graph.nodes) add(node.site);
  for (const FunctionDef& f : graph.functions) {
    add(f.site);
    for (const NodeDef& node : f.nodes) add(node.site);
  }
  return known ? lines : std::set<std::uint32_t>();
}

// One line that names a node or a function and the line that it was made on, unless that was
// changed, too.
void check_refusal(const Status& refused, const std::set<std::uint32_t>& lines) {
  const std::string text = refused.text();
  CAPTURE(text);
  CHECK(!refused.message().empty());
  CHECK(refused.code() != Code::internal);
  CHECK(text.find('\n') == text.npos);
  CHECK(text.size() < 8'000);
  if (lines.empty()) return;
  const std::string before = std::string(kHostileFile) + ":";
  const std::size_t at = text.find(before);
  REQUIRE(at != text.npos);
  CHECK(
      lines.contains(std::uint32_t(std::strtoul(text.c_str() + at + before.size(), nullptr, 10))));
}

void run_one(std::uint64_t seed, const HostilePrograms& programs, Ends& ends) {
  CAPTURE(seed);
  Random random(seed);
  Expected<GraphDef> graph = programs.draw(random).graph;
  if (!graph.ok()) {
    CHECK(!graph.status().message().empty());
    ++ends.no_message;
    return;
  }
  const std::set<std::uint32_t> lines = lines_of(*graph);
  auto imported = import_graph(std::move(*graph), ops::builtin().ops);
  if (!imported.ok()) {
    check_refusal(imported.status(), lines);
    ++ends.not_imported;
    return;
  }
  if (imported->nodes.empty()) return;
  const CompileRequest request = request_for(*imported, random);
  Target target = target_here();
  target.fixed = variable_homes(*imported, target, request.replicas > 1);
  auto compiled = compile(*imported, request, target);
  if (!compiled.ok()) {
    check_refusal(compiled.status(), lines);
    ++ends.not_compiled;
    return;
  }
  ++ends.compiled;
}

void bombard(std::uint64_t first, std::uint64_t programs) {
  constexpr std::uint64_t kOfOnePool = 4096;
  std::optional<HostilePrograms> pool;
  Ends ends;
  using Clock = std::chrono::steady_clock;
  const std::uint64_t before = testing::held_bytes();
  for (std::uint64_t seed = first; seed < first + programs; ++seed) {
    if (!pool || seed % kOfOnePool == 0) pool.emplace(seed / kOfOnePool);
    const MostResident resident;
    const auto start = Clock::now();
    run_one(seed, *pool, ends);
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    if (took > ends.longest) ends.longest = took, ends.longest_seed = seed;
    if (const std::uint64_t most = resident.added(); most > ends.most)
      ends.most = most, ends.most_seed = seed;
    if (seed % 256 != 0 && seed + 1 != first + programs) continue;
    const std::uint64_t now = testing::held_bytes();
    ends.growth = std::max(ends.growth, now - std::min(before, now));
  }
  MESSAGE("hostile programs: " << programs << " from seed " << first << ": unreadable "
                               << ends.no_message << ", refused " << ends.not_imported
                               << ", not compiled " << ends.not_compiled << ", compiled "
                               << ends.compiled << "; longest " << ends.longest << " s (seed "
                               << ends.longest_seed
                               << "), most within one MiB: " << (ends.most >> 20) << " (seed "
                               << ends.most_seed << "), growth MiB: " << (ends.growth >> 20));
  CHECK(ends.compiled > programs / 50);
  CHECK(ends.not_imported > programs / 20);
  CHECK(ends.not_compiled > programs / 100);
  CHECK(ends.growth <= std::uint64_t{64} << 20);
}

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace

TEST_CASE("hostile programs are refused by a node and its line, or compile") {
  bombard(number_from("TROUPE_SEED", 1), number_from("TROUPE_PROGRAMS", 300));
}

}  // namespace troupe::test
