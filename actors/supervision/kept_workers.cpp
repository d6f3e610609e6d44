#include "actors/supervision/kept_workers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "actors/processes/launch.hpp"

namespace troupe {
namespace {

constexpr std::size_t kMostHosts = 4096;  // as Cluster::wait_for
// Of a program that takes its time before it listens.
constexpr const char* kOrphanTimeout = "600";

}  // namespace

std::vector<ProcessSpec> KeptWorkers::specs() const {
  std::vector<ProcessSpec> all;
  const auto add = [&](std::vector<std::string> command, const std::string& secret) {
    for (const char* word : {"worker", "--master"}) command.emplace_back(word);
    command.push_back(listen);
    for (const std::string& word : {std::string("--orphan-timeout"), std::string(kOrphanTimeout),
                                    std::string("--secret-file"), secret})
      command.push_back(word);
    all.push_back(
        {.child = {.id = fmt::format("worker-{}", all.size()), .restart = Restart::permanent},
         .command = std::move(command)});
    all.back().own_group = true;
  };
  for (int i = 0; i < local; ++i) add({troupe}, secret_file);
  for (const std::string& host : hosts) {
    std::vector<std::string> command = ssh;
    command.push_back(host);
    command.emplace_back("troupe");
    add(std::move(command), "-");
    all.back().input = secret_file;
  }
  return all;
}

std::vector<std::string> KeptWorkers::tell(std::vector<std::string> command) const {
  std::vector<std::string> words = {"--listen",      listen,
                                    "--wait-for",    std::to_string(count() - spares),
                                    "--secret-file", secret_file};
  if (spares > 0) words.insert(words.end(), {"--spares", std::to_string(spares)});
  command.insert(std::find(command.begin() + 1, command.end(), "--"), words.begin(), words.end());
  return command;
}

Expected<std::vector<std::string>> read_hosts(const std::string& path) {
  std::ifstream in(path);
  if (!in) return not_found(fmt::format("cannot open '{}'", path));
  std::vector<std::string> all;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    line.resize(std::min(line.size(), line.find('#')));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r'))
      line.pop_back();
    line.erase(0, std::min(line.size(), line.find_first_not_of(" \t")));
    if (line.empty()) continue;
    auto hosts = hosts_of(line, kMostHosts - all.size());
    // A word that ssh would take for an option.
    if (hosts.ok() && std::any_of(hosts->begin(), hosts->end(),
                                  [](const std::string& host) { return host[0] == '-'; }))
      hosts = invalid_argument("a host does not begin with '-'");
    if (!hosts.ok())
      return invalid_argument(fmt::format("{}:{}: {}", path, number, hosts.status().message()));
    all.insert(all.end(), hosts->begin(), hosts->end());
  }
  if (all.empty()) return invalid_argument(fmt::format("'{}' names no host", path));
  return all;
}

}  // namespace troupe
