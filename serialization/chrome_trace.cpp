#include "serialization/chrome_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace troupe {
namespace {

// Times are multiples of 1/8 us, which are exact as doubles in both units: nested spans stay nested
// for a reader that computes with doubles.
constexpr std::int64_t kGrid = 125;
constexpr std::int64_t kMargin = 1'000'000'000;
constexpr std::size_t kMostRows = 64;  // of one line

constexpr std::string_view kCategories[] = {"node", "burst", "send", "receive", "wait", "run"};
static_assert(std::size(kCategories) == kSpanKinds);

constexpr std::size_t kLeftOut = kMostRows;

// A span in grid units, from a second before the timeline began.
struct Placed {
  const Span* span = nullptr;
  std::int64_t begin = 0, end = 0;
  std::size_t row = 0;     // of its line, or kLeftOut
  std::uint64_t flow = 0;  // 0: none
  bool moved = false;
};
// A message that both ends recorded.
struct Message {
  Placed *send = nullptr, *receive = nullptr;
  std::size_t from = 0, to = 0;  // index of the process
};
// A track. Its rows are threads of the output: one, and more for spans that do not nest in it.
struct Line {
  std::size_t process = 0;
  std::string_view name;
  std::vector<Placed> spans;
  std::size_t rows = 0;
};

// Any text as JSON.
std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string microseconds(std::int64_t grid) {
  return fmt::format("{}.{:03}", grid / 8, grid % 8 * 125);
}

class Writer {
 public:
  explicit Writer(const Timeline& timeline) : timeline_(timeline) {}

  std::string write() {
    begin_lines();
    find_messages();
    for (std::size_t p = 0; p < timeline_.processes.size(); ++p) shifts_.push_back(shift_of(p));
    for (Line& line : lines_)
      for (Placed& placed : line.spans) place(line, placed);
    for (const Message& message : messages_) connect(message);
    for (Line& line : lines_) lay_out(line);
    out_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
    for (std::size_t p = 0; p < timeline_.processes.size(); ++p) write_process(p);
    for (const Line& line : lines_) write_line(line);
    out_ += "\n],\"otherData\":" + about().dump() + "}\n";
    return std::move(out_);
  }

 private:
  void begin_lines();
  void find_messages();
  std::int64_t shift_of(std::size_t process) const;
  bool align(const Line& line, Placed& placed) const;
  void place(const Line& line, Placed& placed);
  void connect(const Message& message);
  void write_process(std::size_t process);
  void lay_out(Line& line);
  void write_line(const Line& line);
  void write_span(const Line& line, const Placed& placed, std::size_t thread);
  void write_flow(const Line& line, const Placed& placed, std::size_t thread);
  nlohmann::json about() const;

  static std::size_t pid(std::size_t process) { return process + 1; }  // 0 is the idle process
  void event(std::string_view text) {
    if (out_.back() != '\n') out_ += ",\n";
    out_ += text;
  }

  const Timeline& timeline_;
  std::vector<Line> lines_;
  std::vector<Message> messages_;     // until lines are laid out, which sorts their spans
  std::vector<std::int64_t> shifts_;  // of each process's clock against the master's, ns
  std::uint64_t flows_ = 0, left_out_ = 0, moved_ = 0;
  std::set<std::uint64_t> broken_;  // flows of which an end was left out
  std::int64_t first_ = std::numeric_limits<std::int64_t>::max();  // the first span's begin
  std::size_t threads_ = 1000;  // one number for each row of all processes
  std::string out_;
};

void Writer::begin_lines() {
  for (std::size_t p = 0; p < timeline_.processes.size(); ++p)
    for (const Track& track : timeline_.processes[p].tracks) {
      Line& line = lines_.emplace_back(Line{p, track.name, {}});
      for (const Span& span : track.spans) line.spans.push_back({&span});
    }
}

// A message has the same name at both ends. Of messages with equal names, the first sent is the
// first received.
void Writer::find_messages() {
  using Name = std::tuple<ProcessId, ProcessId, std::uint64_t>;  // from, to, message
  struct End {
    Placed* placed;
    std::size_t process;
  };
  std::map<Name, std::pair<std::vector<End>, std::vector<End>>> ends;
  for (Line& line : lines_)
    for (Placed& placed : line.spans) {
      const ProcessId here = timeline_.processes[line.process].process;
      const Span& span = *placed.span;
      if (span.kind == Span::Kind::send)
        ends[{here, span.peer, span.message}].first.push_back({&placed, line.process});
      else if (span.kind == Span::Kind::receive)
        ends[{span.peer, here, span.message}].second.push_back({&placed, line.process});
    }
  for (auto& [_, both] : ends) {
    auto& [sends, receives] = both;
    for (auto* side : {&sends, &receives})
      std::stable_sort(side->begin(), side->end(), [](const End& a, const End& b) {
        return a.placed->span->begin_ns < b.placed->span->begin_ns;
      });
    for (std::size_t i = 0; i < std::min(sends.size(), receives.size()); ++i)
      messages_.push_back(
          {sends[i].placed, receives[i].placed, sends[i].process, receives[i].process});
  }
}

// The estimated offset, limited so that no message to or from the master arrives before its send.
std::int64_t Writer::shift_of(std::size_t process) const {
  const ProcessTimeline& timeline = timeline_.processes[process];
  if (!timeline.clock) return 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const Message& m : messages_) {
    const std::int64_t sent = m.send->span->begin_ns, received = m.receive->span->begin_ns;
    std::int64_t apart = 0;
    if (m.to == process && timeline_.processes[m.from].process == 0 &&
        !__builtin_sub_overflow(received, sent, &apart))
      most = std::min(most, apart);
    if (m.from == process && timeline_.processes[m.to].process == 0 &&
        !__builtin_sub_overflow(sent, received, &apart))
      least = std::max(least, apart);
  }
  // If the messages contradict each other, the estimate is used.
  return least > most ? timeline.clock->offset_ns
                      : std::clamp(timeline.clock->offset_ns, least, most);
}

// False for impossible times.
bool Writer::align(const Line& line, Placed& placed) const {
  const Span& span = *placed.span;
  const std::int64_t shift = shifts_[line.process];
  const std::int64_t from = timeline_.begin_ns - kMargin, to = timeline_.end_ns + kMargin;
  std::int64_t begin = 0, end = 0;
  if (__builtin_sub_overflow(span.begin_ns, shift, &begin) ||
      __builtin_sub_overflow(span.end_ns, shift, &end))
    return false;
  if (begin < from || end > to || begin > end || std::size_t(span.kind) >= kSpanKinds) return false;
  placed.begin = (begin - from) / kGrid;
  placed.end = (end - from) / kGrid;
  return true;
}

void Writer::place(const Line& line, Placed& placed) {
  if (align(line, placed)) {
    first_ = std::min(first_, placed.begin);
  } else {
    placed.row = kLeftOut;
    ++left_out_;
  }
}

// The end of a flow belongs to a span that is open at that moment, so neither may be empty.
void Writer::connect(const Message& message) {
  Placed *send = message.send, *receive = message.receive;
  if (send->row == kLeftOut || receive->row == kLeftOut) return;
  send->flow = receive->flow = ++flows_;
  send->end = std::max(send->end, send->begin + 1);
  if (receive->begin < send->begin) {
    receive->begin = send->begin;
    receive->moved = true;
    ++moved_;
  }
  receive->end = std::max(receive->end, receive->begin + 1);
}

void Writer::write_process(std::size_t p) {
  const ProcessTimeline& process = timeline_.processes[p];
  event(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{}}}}})",
                    pid(p), json_text(process.name)));
  event(fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{0},"tid":0,)"
                    R"("args":{{"sort_index":{0}}}}})",
                    pid(p)));
}

// Each span goes to the first row where it nests.
void Writer::lay_out(Line& line) {
  // Of spans with the same begin and end, the last recorded is the outermost.
  std::reverse(line.spans.begin(), line.spans.end());
  std::stable_sort(line.spans.begin(), line.spans.end(), [](const Placed& a, const Placed& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::vector<std::vector<const Placed*>> rows;  // the spans that are open
  for (Placed& placed : line.spans) {
    if (placed.row == kLeftOut) continue;
    // The end of a flow would belong to a span inside that begins with it.
    const auto hides_flow_of = [&](const Placed& outer) {
      return outer.flow != 0 && outer.begin == placed.begin;
    };
    const auto fits = [&](std::vector<const Placed*>& open) {
      while (!open.empty() && open.back()->end <= placed.begin) open.pop_back();
      return open.empty() || (open.back()->end >= placed.end && !hides_flow_of(*open.back()));
    };
    const auto row = std::find_if(rows.begin(), rows.end(), fits);
    placed.row = std::size_t(row - rows.begin());
    if (placed.row == kLeftOut) {
      ++left_out_;
      broken_.insert(placed.flow);
    } else if (row == rows.end()) {
      rows.push_back({&placed});
    } else {
      row->push_back(&placed);
    }
  }
  line.rows = rows.size();
}

void Writer::write_line(const Line& line) {
  const std::size_t first = std::exchange(threads_, threads_ + line.rows);
  for (std::size_t row = 0; row < line.rows; ++row) {
    std::string name(line.name);
    if (row > 0) name += fmt::format(" ({})", row + 1);
    event(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},)"
                      R"("args":{{"name":{}}}}})",
                      pid(line.process), first + row, json_text(name)));
  }
  for (const Placed& placed : line.spans) {
    if (placed.row == kLeftOut) continue;
    write_span(line, placed, first + placed.row);
    if (placed.flow != 0 && !broken_.contains(placed.flow))
      write_flow(line, placed, first + placed.row);
  }
}

void Writer::write_span(const Line& line, const Placed& placed, std::size_t thread) {
  const Span& span = *placed.span;
  nlohmann::json args = nlohmann::json::object();
  if (span.run != 0) args["run"] = span.run;
  if (span.kind == Span::Kind::send || span.kind == Span::Kind::receive) {
    args["bytes"] = span.bytes;
    args[span.kind == Span::Kind::send ? "to" : "from"] = span.peer;
  }
  if (placed.moved) args["moved"] = true;
  event(fmt::format(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},)"
                    R"("args":{}}})",
                    json_text(span.name), kCategories[std::size_t(span.kind)], pid(line.process),
                    thread, microseconds(placed.begin - first_),
                    microseconds(placed.end - placed.begin), args.dump()));
}

// An end of a flow has the begin time of its span, and follows it in the output.
void Writer::write_flow(const Line& line, const Placed& placed, std::size_t thread) {
  const bool send = placed.span->kind == Span::Kind::send;
  event(fmt::format(R"({{"ph":"{}","name":"message","cat":"flow","id":{},"pid":{},"tid":{},)"
                    R"("ts":{}{}}})",
                    send ? 's' : 'f', placed.flow, pid(line.process), thread,
                    microseconds(placed.begin - first_), send ? "" : R"(,"bp":"e")"));
}

nlohmann::json Writer::about() const {
  nlohmann::json processes = nlohmann::json::array();
  std::uint64_t dropped = 0;
  for (std::size_t p = 0; p < timeline_.processes.size(); ++p) {
    const ProcessTimeline& process = timeline_.processes[p];
    dropped += process.dropped;
    if (process.process == 0) continue;
    nlohmann::json entry = {{"pid", pid(p)},
                            {"process", process.process},
                            {"complete", process.complete},
                            {"aligned_by_us", double(shifts_[p]) / 1000},
                            {"clock_offset_us", nullptr},
                            {"clock_error_us", nullptr}};
    if (process.clock) {
      entry["clock_offset_us"] = double(process.clock->offset_ns) / 1000;
      entry["clock_error_us"] = double(process.clock->error_ns) / 1000;
    }
    processes.push_back(std::move(entry));
  }
  return {{"workers", std::move(processes)},
          {"dropped_spans", dropped},
          {"left_out_spans", left_out_},
          {"moved_receives", moved_}};
}

}  // namespace

std::string chrome_trace(const Timeline& timeline) { return Writer(timeline).write(); }

}  // namespace troupe
