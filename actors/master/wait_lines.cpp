#include "actors/master/wait_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "actors/master/run_table.hpp"

namespace troupe {
namespace {

double seconds_of(Instant time) { return std::chrono::duration<double>(time).count(); }

std::string task_text(const JobLook& look, TaskId task) {
  const auto at = look.tasks.find(task);
  return at == look.tasks.end() ? fmt::format("task {}", number(task)) : "worker " + at->second;
}

// What the tasks have told, by what it is of: of all runs, each is asked for.
class Told {
 public:
  explicit Told(const JobLook& look) {
    for (const auto& [task, said] : look.told)
      for (const NodeWait& wait : said.waits)
        waits_[{task, wait.attempt, wait.partition}].push_back(&wait);
  }
  const std::vector<const NodeWait*>& of(TaskId task, const AttemptId& attempt,
                                         std::uint32_t partition) const {
    static const std::vector<const NodeWait*> kNone;
    const auto at = waits_.find({task, attempt, partition});
    return at == waits_.end() ? kNone : at->second;
  }

 private:
  std::map<std::tuple<TaskId, AttemptId, std::uint32_t>, std::vector<const NodeWait*>> waits_;
};

// What that partition of the run does, for another that waits for its tensor.
std::string of_the_sender(const JobLook& look, const Told& all, const RunLook& run,
                          const NodeWait& wait) {
  const auto part =
      std::find_if(run.parts.begin(), run.parts.end(),
                   [&](const RunLook::Part& each) { return each.partition == wait.from; });
  if (part == run.parts.end())
    return ", which was made elsewhere and has not arrived: it is under way, or lost";
  std::string text = " from " + part->device;
  if (!look.told.contains(part->task)) return text + ", which does not answer";
  const auto& waits = all.of(part->task, run.attempt, wait.from);
  if (waits.empty()) return text;
  const NodeWait& other = *waits.front();
  if (other.on == Wait::On::node)
    return text + fmt::format(", which computes node '{}' ({}){}", other.node, other.op,
                              other.site.empty() ? "" : " at " + other.site);
  return text + ", which waits for " + other.what;
}

Wait of_run(const RunLook& run, Wait::On on) {
  Wait wait;
  wait.on = on;
  wait.run = step_name(run.run);
  wait.age = seconds_of(run.age);
  if (run.left) wait.left = seconds_of(*run.left);
  return wait;
}

void add_part(const JobLook& look, const Told& all, const RunLook& run, const RunLook::Part& part,
              std::vector<Wait>& out) {
  const auto told = look.told.find(part.task);
  if (told == look.told.end()) {
    Wait& wait = out.emplace_back(of_run(run, Wait::On::task));
    wait.task = task_text(look, part.task);
    wait.device = part.device;
    wait.seconds = seconds_of(run.attempt_age);
    wait.what = fmt::format("{}, which has not said within {:.1f} s what it does", wait.task,
                            seconds_of(look.asked_for));
    return;
  }
  const auto& waits = all.of(part.task, run.attempt, part.partition);
  for (const NodeWait* known : waits) {
    const NodeWait& each = *known;
    Wait& wait = out.emplace_back(of_run(run, each.on));
    wait.node = each.node;
    wait.op = each.op;
    wait.site = each.site;
    wait.device = each.device;
    wait.what = each.what;
    wait.seconds = double(each.milliseconds) / 1e3;
    if (each.on == Wait::On::tensor) wait.what += of_the_sender(look, all, run, each);
  }
  if (!waits.empty() || told->second.cut) return;
  Wait& wait = out.emplace_back(of_run(run, Wait::On::lost));
  wait.task = task_text(look, part.task);
  wait.device = part.device;
  wait.seconds = seconds_of(run.attempt_age);
  wait.what = wait.task + ", which knows nothing of it: a message is under way, or was lost";
}

void add_compile(const JobLook& look, const CompileLook& compile, std::vector<Wait>& out) {
  Wait wait;
  wait.on = Wait::On::compile;
  wait.seconds = seconds_of(compile.age);
  if (compile.compiled == 0) {
    wait.run = compile.session;
    wait.what = "its graph to be compiled at the master";
    out.push_back(std::move(wait));
    return;
  }
  wait.run = fmt::format("compiled step {} of {}", compile.compiled, compile.session);
  for (TaskId task : compile.loading) {
    Wait& each = out.emplace_back(wait);
    each.task = task_text(look, task);
    const auto told = look.told.find(task);
    const auto has = [&](const std::vector<CompiledId>& all) {
      return std::find(all.begin(), all.end(), compile.compiled) != all.end();
    };
    if (told == look.told.end()) {
      each.what = fmt::format("{}, which has not said within {:.1f} s what it does", each.task,
                              seconds_of(look.asked_for));
    } else if (has(told->second.preparing)) {
      each.what = each.task + " to compile and load it";
    } else if (has(told->second.loaded)) {
      each.what = each.task + " to declare its variables";
    } else {
      each.on = Wait::On::lost;
      each.what = each.task + ", which knows nothing of it: a message is under way, or was lost";
    }
  }
}

// What the run waits for at the master. If tasks that are to do something for it do not even say
// what they do, once for each of them.
void add_turn(const JobLook& look, const RunLook& run, std::vector<Wait>& out) {
  Wait wait = of_run(run, Wait::On::turn);
  wait.seconds = seconds_of(run.attempt_age);
  wait.what = run.turn;
  wait.node = run.node;
  wait.op = run.op;
  wait.site = run.site;
  bool silent = false;
  for (const TaskId task : run.unanswered) {
    if (look.told.contains(task)) continue;
    silent = true;
    Wait& each = out.emplace_back(wait);
    each.on = Wait::On::task;
    each.task = task_text(look, task);
    each.what +=
        fmt::format(": {} has not said within {:.1f} s what it does",
                    run.unanswered.size() == 1 ? "it" : each.task, seconds_of(look.asked_for));
  }
  if (!silent) out.push_back(std::move(wait));
}

void add_run(const JobLook& look, const Told& told, const RunLook& run, std::vector<Wait>& out) {
  if (!run.computes) add_turn(look, run, out);
  for (const RunLook::Part& part : run.parts) add_part(look, told, run, part, out);
}

using WaitsOfRun = std::vector<const Wait*>;

std::string lines_of(const WaitsOfRun& waits, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(waits.size(), most); ++i) {
    Wait wait = *waits[i];
    wait.left.reset();
    text += (i == 0 ? "" : "; ") + wait.text();
  }
  if (waits.size() > most) text += fmt::format("; and for {} more", waits.size() - most);
  return text;
}

}  // namespace

std::vector<Wait> waits_of(const JobLook& look) {
  const Told told(look);
  std::vector<Wait> all;
  for (const RunLook& run : look.runs) add_run(look, told, run, all);
  for (const CompileLook& compile : look.compiles) add_compile(look, compile, all);
  return all;
}

std::string lines_of(const std::vector<Wait>& waits, const std::string& run, std::size_t most) {
  WaitsOfRun of_run;
  for (const Wait& wait : waits)
    if (wait.run == run) of_run.push_back(&wait);
  return lines_of(of_run, most);
}

std::map<RunId, std::string> lines_of(const JobLook& look, const std::vector<RunId>& runs,
                                      std::size_t most) {
  std::map<RunId, std::string> lines;
  for (const RunId& run : runs) lines[run];
  const Told told(look);
  for (const RunLook& run : look.runs) {
    const auto wanted = lines.find(run.run);
    if (wanted == lines.end()) continue;
    std::vector<Wait> waits;
    add_run(look, told, run, waits);
    WaitsOfRun all;
    for (const Wait& wait : waits) all.push_back(&wait);
    wanted->second = lines_of(all, most);
  }
  return lines;
}

std::vector<LostPart> lost_parts(const JobLook& look) {
  const Told told_of(look);
  std::vector<LostPart> all;
  for (const RunLook& run : look.runs)
    for (const RunLook::Part& part : run.parts) {
      const auto told = look.told.find(part.task);
      if (told == look.told.end() || told->second.cut) continue;
      if (told_of.of(part.task, run.attempt, part.partition).empty())
        all.push_back({run.run, run.attempt, part.partition, part.task});
    }
  return all;
}

// ------------------------------------------------------------------ what stands still

namespace {

constexpr Instant kUnderWay = std::chrono::seconds(3);  // of a message without large tensors
constexpr int kWithTensors = 10;                        // times still_after, with large tensors

// Whether nothing that the run waits for has moved for that long, and it waits neither for its
// client nor for another run.
std::optional<std::string> stands_still(const RunLook& run, const WaitsOfRun& waits,
                                        Instant after) {
  if (!run.computes || run.attempt_age < after) return std::nullopt;
  for (const Wait* wait : waits)
    if (wait->on == Wait::On::queue || wait->on == Wait::On::turn ||
        wait->seconds < seconds_of(after))
      return std::nullopt;
  return fmt::format("no node of {} has begun or ended for {:.0f} s: {}", step_name(run.run),
                     seconds_of(after), lines_of(waits, 5));
}

}  // namespace

WaitsWatch::Found WaitsWatch::look(const JobLook& look, const std::vector<Wait>& waits) {
  Found found;
  std::map<RunId, Instant> told;
  std::unordered_map<std::string_view, WaitsOfRun> waits_by_run;
  if (still_after_ != Instant{})
    for (const Wait& wait : waits) waits_by_run[wait.run].push_back(&wait);
  for (const RunLook& run : look.runs) {
    const auto before = told_.find(run.run);
    if (still_after_ == Instant{}) break;
    if (before != told_.end() && run.age < before->second) {
      told.insert(*before);
    } else if (auto text = stands_still(run, waits_by_run[step_name(run.run)], still_after_)) {
      found.still.push_back(std::move(*text));
      told[run.run] = 2 * run.age;  // at growing intervals
    }
  }
  told_ = std::move(told);
  std::map<LostPart, Instant> lost;
  for (const LostPart& part : lost_parts(look)) {
    const auto run = std::find_if(look.runs.begin(), look.runs.end(),
                                  [&](const RunLook& each) { return each.run == part.run; });
    const auto shape =
        std::find_if(run->parts.begin(), run->parts.end(),
                     [&](const RunLook::Part& each) { return each.partition == part.partition; });
    const auto seen = lost_.find(part);
    const Instant first = seen == lost_.end() ? run->age : seen->second;
    lost[part] = first;
    const Instant wanted = shape->moves_tensors ? kWithTensors * still_after_ : kUnderWay;
    if (seen != lost_.end() && wanted > Instant{} && run->age - first >= wanted)
      found.lost.push_back(part);
  }
  lost_ = std::move(lost);
  return found;
}

}  // namespace troupe
