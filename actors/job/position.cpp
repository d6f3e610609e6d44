#include "actors/job/position.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace troupe {
namespace {

constexpr std::string_view kFirst = "troupe job 1";
constexpr std::int64_t kMostSteps = std::int64_t{1} << 62;
constexpr int kMostJudgements = 2'000'000'000;

// Numbers, a space before each, to the end of a line.
class Words {
 public:
  explicit Words(std::string_view text) : left_(text) {}
  template <class T>
  bool number(T& value) {
    if (left_.empty() || left_.front() != ' ') return false;
    left_.remove_prefix(1);
    const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), value);
    if (error != std::errc{}) return false;
    left_.remove_prefix(std::size_t(end - left_.data()));
    return true;
  }
  bool over() const { return left_.empty(); }

 private:
  std::string_view left_;
};

}  // namespace

std::string JobPosition::text() const {
  std::string text = fmt::format("{} {} {}", kFirst, step, worse);
  if (best) text += fmt::format(" {} {}", best_step, *best);
  return text + "\n" + note;
}

Expected<JobPosition> JobPosition::parse(std::string_view text) {
  const std::size_t end = text.find('\n');
  JobPosition position;
  bool good = end != text.npos && text.starts_with(kFirst);
  if (good) {
    Words words(text.substr(kFirst.size(), end - kFirst.size()));
    good = words.number(position.step) && words.number(position.worse) && position.step >= 0 &&
           position.step < kMostSteps && position.worse >= 0 && position.worse < kMostJudgements;
    if (good && !words.over())
      good = words.number(position.best_step) && words.number(position.best.emplace()) &&
             words.over() && *position.best == *position.best;
  }
  if (!good) return data_loss("the note of the checkpoint's program is none of a Job");
  position.note = text.substr(end + 1);
  return position;
}

}  // namespace troupe
