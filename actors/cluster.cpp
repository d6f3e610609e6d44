#include "actors/cluster.hpp"

#include <charconv>
#include <optional>
#include <string_view>

#include "core/byte_count.hpp"

namespace troupe {
namespace {

Expected<int> parse_count(std::string_view option, std::string_view text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0 || value > 4096)
    return invalid_argument(std::string(option) + " wants a number from 0 to 4096, not '" +
                            std::string(text) + "'");
  return value;
}

}  // namespace

Expected<int> Cluster::parse_workers(const std::string& text) {
  if (text == "local") return 0;
  std::string_view prefix = "local:";
  if (text.rfind(prefix, 0) != 0)
    return invalid_argument("--cluster wants 'local' or 'local:W', not '" + text + "'");
  return parse_count("--cluster local:", std::string_view(text).substr(prefix.size()));
}

Expected<Cluster> Cluster::try_from_args(int argc, char** argv) {
  Cluster cluster;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    auto value = [&](std::string_view name) -> std::optional<std::string> {
      if (argument.rfind(name, 0) != 0) return std::nullopt;
      if (argument.size() > name.size() && argument[name.size()] == '=')
        return std::string(argument.substr(name.size() + 1));
      if (argument.size() == name.size() && i + 1 < argc) return std::string(argv[++i]);
      return std::nullopt;
    };
    if (auto text = value("--threads")) {
      TROUPE_TRY(cluster.threads, parse_count("--threads", *text));
    } else if (auto count = value("--replicas")) {
      TROUPE_TRY(cluster.replicas, parse_count("--replicas", *count));
    } else if (auto spec = value("--cluster")) {
      TROUPE_TRY(cluster.workers, parse_workers(*spec));
    } else if (auto bytes = value("--step-memory")) {
      TROUPE_TRY(cluster.step_memory, parse_byte_count("--step-memory", *bytes));
    }
  }
  if (cluster.replicas < 1) return invalid_argument("--replicas wants at least 1");
  return cluster;
}

}  // namespace troupe
