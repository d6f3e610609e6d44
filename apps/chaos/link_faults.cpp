#include <csignal>

#include "apps/chaos/faults.hpp"
#include "apps/chaos/links.hpp"

namespace troupe {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookForLinks{10};  // between looks for new connections of a link
constexpr milliseconds kForGood{std::chrono::hours(1)};
constexpr milliseconds kGlitchFor{1000}, kSlowFor{3000};
constexpr std::uint32_t kSlow = 64 << 10;  // bytes per second

Expected<Link> any_link(const ChaosJob& job, Random& random) {
  TROUPE_TRY(const auto links, links_among(job.all()));
  if (links.empty()) return failed_precondition("no two of its processes are connected");
  Link link = links[random.below(links.size())];
  if (random.below(2) == 1) std::swap(link.one, link.other);
  return link;
}

bool are_there(const Link& link) { return kill(link.one, 0) == 0 && kill(link.other, 0) == 0; }

using Change = std::function<void(int one, int other)>;

// What is done to the connections of a link, for some time and to those that come in it, and then
// taken back.
Status change_for(ChaosJob& job, Random& random, milliseconds time, Change change, Change back) {
  TROUPE_TRY(const Link link, any_link(job, random));
  auto changed = std::make_shared<LinkChange>(link, std::move(change));
  TROUPE_TRY(const int now, changed->apply());
  if (now == 0) return failed_precondition("the connection was gone");
  job.meanwhile([=, back = std::move(back)](const std::stop_token& stop) {
    const auto until = ChaosJob::Clock::now() + time;
    while (!stop.stop_requested() && ChaosJob::Clock::now() < until && are_there(link) &&
           changed->apply().ok())
      pause_for(stop, kLookForLinks);
    (void)LinkChange(link, back).apply();
  });
  return ok_status();
}

void deafen_both(int one, int other) {
  deafen(one);
  deafen(other);
}

void hear_both(int one, int other) {
  hear(one);
  hear(other);
}

// Of control or of data, as it comes.
Status reset_any(ChaosJob& job, Random& random) {
  TROUPE_TRY(const Link link, any_link(job, random));
  TROUPE_TRY(const int there, LinkChange(link, [](int, int) {}).apply());
  if (there == 0) return failed_precondition("the connection was gone");
  int left = int(random.below(std::uint64_t(there)));
  TROUPE_TRY(LinkChange(link, [&](int one, int) {
               if (left-- == 0) reset(one);
             }).apply());
  return ok_status();
}

}  // namespace

std::vector<Fault> link_faults() {
  return {
      {"cut", "all that two processes send to each other is lost",
       [](ChaosJob& job, Random& random) {
         return change_for(job, random, kForGood, deafen_both, hear_both);
       }},
      {"glitch", "all that two processes send to each other is lost for 1 s",
       [](ChaosJob& job, Random& random) {
         return change_for(job, random, kGlitchFor, deafen_both, hear_both);
       }},
      {"half-open", "all that one process sends to another one is lost",
       [](ChaosJob& job, Random& random) {
         return change_for(
             job, random, kForGood, [](int one, int) { deafen(one); },
             [](int one, int) { hear(one); });
       }},
      {"reset", "a connection between two processes is reset", reset_any},
      {"slow-link", "two processes send 64 KiB/s to each other, for 3 s",
       [](ChaosJob& job, Random& random) {
         return change_for(
             job, random, kSlowFor,
             [](int one, int other) {
               slow_down(one, kSlow);
               slow_down(other, kSlow);
             },
             [](int one, int other) {
               full_speed(one);
               full_speed(other);
             });
       }},
  };
}

}  // namespace troupe
