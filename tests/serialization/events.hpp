// Event files read back by field numbers, independently of what writes them.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

#include "serialization/file.hpp"
#include "serialization/tf_record.hpp"

namespace troupe::testing {

struct ReadEvent {
  double wall = 0;
  std::int64_t step = 0;
  std::string version, graph, summary, run_tag, run;
  bool start = false;

  // The numbers of its summary, by tag.
  std::map<std::string, float> scalars() const {
    std::map<std::string, float> out;
    for (protozero::pbf_reader in(summary); in.next(1);) {
      std::string tag;
      std::optional<float> number;
      for (protozero::pbf_reader value = in.get_message(); value.next();)
        if (value.tag() == 1)
          tag = value.get_string();
        else if (value.tag() == 2)
          number = value.get_float();
        else
          value.skip();
      if (number) out[tag] = *number;
    }
    return out;
  }
  std::vector<std::string> tags() const {
    std::vector<std::string> out;
    for (protozero::pbf_reader in(summary); in.next(1);) {
      protozero::pbf_reader value = in.get_message();
      if (value.next(1)) out.push_back(value.get_string());
    }
    return out;
  }
};

inline ReadEvent parse_event(std::span<const std::byte> bytes) {
  ReadEvent out;
  protozero::pbf_reader in(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (in.next()) switch (in.tag()) {
      case 1:
        out.wall = in.get_double();
        break;
      case 2:
        out.step = in.get_int64();
        break;
      case 3:
        out.version = in.get_string();
        break;
      case 4:
        out.graph = in.get_bytes();
        break;
      case 5:
        out.summary = in.get_bytes();
        break;
      case 7: {
        protozero::pbf_reader log = in.get_message();
        REQUIRE(log.next(1));
        out.start = log.get_enum() == 1;
        break;
      }
      case 8:
        for (protozero::pbf_reader run = in.get_message(); run.next();) {
          std::string& field = run.tag() == 1 ? out.run_tag : out.run;
          field = run.get_bytes();
        }
        break;
      default:
        FAIL("field " << in.tag());
    }
  return out;
}

// All events of a folder, file after file in the order of their names. A file that was torn ends
// there.
inline std::vector<ReadEvent> read_events(const std::string& dir, FileSystem& files = disk()) {
  std::vector<ReadEvent> out;
  auto names = files.list(dir);
  REQUIRE(names.ok());
  for (const std::string& name : *names) {
    if (name.find("tfevents") == std::string::npos) continue;
    auto file = files.open(dir + "/" + name);
    REQUIRE(file.ok());
    TfRecordReader reader(**file, name);
    for (;;) {
      auto record = reader.next();
      if (!record.ok() || !*record) break;
      out.push_back(parse_event(**record));
    }
  }
  return out;
}

// What a reader shows: of events behind a start those of earlier steps are kept, as TensorBoard
// does.
inline std::vector<ReadEvent> shown_events(const std::vector<ReadEvent>& all) {
  std::vector<ReadEvent> out;
  for (const ReadEvent& event : all) {
    if (event.start)
      std::erase_if(out,
                    [&](const ReadEvent& e) { return !e.summary.empty() && e.step >= event.step; });
    else
      out.push_back(event);
  }
  return out;
}

}  // namespace troupe::testing
