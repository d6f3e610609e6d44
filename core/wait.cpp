#include "core/wait.hpp"

#include <fmt/format.h>

namespace troupe {

const char* name_of(Wait::On on) {
  static const char* const kNames[] = {"node",   "lane", "device", "resource", "queue",  "tensor",
                                       "commit", "turn", "task",   "lost",     "compile"};
  return kNames[std::size_t(on)];
}

std::string Wait::text() const {
  std::string where;
  if (!node.empty()) {
    where = fmt::format("node '{}'", node);
    if (!op.empty()) where += fmt::format(" ({})", op);
    if (!site.empty()) where += " at " + site;
  }
  if (!device.empty()) where += (where.empty() ? "the part on " : " on ") + device;
  std::string text;
  if (on == On::node)
    text = fmt::format("{} computes {} for {:.1f} s", run, where, seconds);
  else if (where.empty())
    text = fmt::format("{} waits {:.1f} s for {}", run, seconds, what);
  else
    text = fmt::format("{} waits {:.1f} s for {}, in {}", run, seconds, what, where);
  if (age >= seconds + 1) text += fmt::format("; the run began {:.1f} s ago", age);
  if (left) text += fmt::format("; its timeout passes in {:.1f} s", *left > 0 ? *left : 0);
  return text;
}

}  // namespace troupe
