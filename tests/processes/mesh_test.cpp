// What a worker makes of its master, of the other workers, and of those who claim to be one.
#include "actors/processes/mesh.hpp"

#include <doctest/doctest.h>

#include "tests/processes/outputs.hpp"

using namespace troupe;

namespace {

constexpr PeerId kMaster = 100;
constexpr std::uint64_t kOwn = 77;

Join words(ProcessId process, std::uint64_t incarnation) {
  Join join;
  join.process = process;
  join.incarnation = incarnation;
  return join;
}

// Process 2 of a job of three; process n is of incarnation 10 n.
struct Worker {
  Worker() : mesh(words(0, kOwn), kMaster) {}

  void welcome() {
    Welcome welcome;
    welcome.process = 2;
    welcome.task = TaskId{1};
    mesh.up(kMaster, {}, out);
    mesh.welcome(welcome, out);
    mesh.hosting(std::vector<std::string>{"device"}, out);
    CHECK(reported<Ready>().back().view == 0);
    out.clear();
  }
  void members(std::uint64_t view = 1, std::uint64_t third = 30) {
    mesh.members({view,
                  {{1, TaskId{0}, 10, "one", 1},
                   {2, TaskId{1}, kOwn, "two", 2},
                   {3, TaskId{2}, third, "three", 3}}},
                 out);
  }
  // Connected to process 1 as peer 1, and by process 3 as peer 3.
  void join() {
    welcome();
    members();
    mesh.connecting(1, PeerId{1}, out);
    mesh.up(1, words(0, 10), out);
    mesh.up(3, words(3, 30), out);
    REQUIRE(reported<Ready>().size() == 1);
    out.clear();
  }

  template <class T>
  std::vector<T> all() const {
    return outputs_of<T>(out);
  }
  template <class M>
  std::vector<M> reported() const {
    return messages_of<Mesh::Report, M>(out);
  }
  Status ended() const {
    REQUIRE(all<Mesh::End>().size() == 1);
    return all<Mesh::End>()[0].status;
  }

  Mesh mesh;
  Mesh::Outputs out;
};

}  // namespace

TEST_CASE("a worker connects to lower numbers and is connected to by higher ones") {
  Worker w;
  w.welcome();
  w.members();
  REQUIRE(w.all<Mesh::Connect>().size() == 1);
  CHECK(w.all<Mesh::Connect>()[0].to.host == "one");
  w.mesh.connecting(1, PeerId{1}, w.out);
  w.mesh.up(3, words(3, 30), w.out);
  CHECK(w.all<Mesh::Admit>().back().process == 3);
  CHECK(w.reported<Ready>().empty());
  w.mesh.up(1, words(0, 10), w.out);
  REQUIRE(w.reported<Ready>().size() == 1);
  CHECK(w.reported<Ready>()[0].view == 1);
}

TEST_CASE("a worker's number cannot be claimed by another incarnation") {
  Worker w;
  w.welcome();
  w.mesh.up(5, words(3, 666), w.out);  // before the real one, and before anybody knows who it is
  w.members();
  w.mesh.up(6, words(3, 667), w.out);
  CHECK(w.all<Mesh::Admit>().empty());
  w.mesh.up(3, words(3, 30), w.out);
  REQUIRE(w.all<Mesh::Admit>().size() == 1);
  CHECK(w.all<Mesh::Admit>()[0].peer == 3);
}

TEST_CASE("a member that connects before it is known to be one is let in when it is") {
  Worker w;
  w.welcome();
  w.mesh.up(3, words(3, 30), w.out);
  CHECK(w.all<Mesh::Admit>().empty());
  w.members();
  CHECK(w.all<Mesh::Admit>().size() == 1);
}

TEST_CASE("a member that comes back waits until its old connection is known to be over") {
  Worker w;
  w.join();
  w.mesh.up(4, words(3, 30), w.out);
  CHECK(w.all<Mesh::Admit>().empty());
  w.mesh.down(3, unavailable("reset"), w.out);
  REQUIRE(w.all<Mesh::Admit>().size() == 1);
  CHECK(w.all<Mesh::Admit>()[0].peer == 4);
  CHECK(w.reported<LinkLost>().size() == 1);  // what was under way is lost all the same
}

TEST_CASE("masters, lower numbers and this process itself do not connect here") {
  Worker w;
  w.join();
  for (ProcessId process : {0u, 2u}) w.mesh.up(50 + process, words(process, 1), w.out);
  CHECK(w.all<Mesh::Close>().size() == 2);
  w.mesh.down(1, unavailable("reset"), w.out);
  w.mesh.up(60, words(1, 10), w.out);
  CHECK(w.all<Mesh::Admit>().empty());
}

TEST_CASE("claims that come to nothing are bounded") {
  Worker w;
  w.welcome();
  for (PeerId peer = 1000; peer < 1000 + 4097; ++peer) w.mesh.up(peer, words(9, peer), w.out);
  REQUIRE(w.all<Mesh::Close>().size() == 1);
  CHECK(w.all<Mesh::Close>()[0].peer == 1000);
}

TEST_CASE("a link that breaks or never comes about is reported to the master") {
  Worker w;
  w.join();
  w.mesh.down(3, unavailable("reset"), w.out);
  REQUIRE(w.reported<LinkLost>().size() == 1);
  LinkLost lost = w.reported<LinkLost>()[0];
  CHECK(lost.process == 2);
  CHECK(lost.other == 3);
  CHECK(lost.view == 1);
  CHECK(lost.why.message() == "reset");
  Worker v;
  v.welcome();
  v.members();
  v.mesh.connecting(1, invalid_argument("no address"), v.out);
  CHECK(v.reported<LinkLost>().size() == 1);
  CHECK(v.all<Mesh::End>().empty());
}

TEST_CASE("another view replaces those who left") {
  Worker w;
  w.join();
  w.members(2, 31);
  REQUIRE(w.all<Mesh::Close>().size() == 1);
  CHECK(w.all<Mesh::Close>()[0].peer == 3);
  CHECK(w.all<Mesh::Connect>().empty());  // process 1 is connected
  w.mesh.down(3, cancelled("it is no member any more"), w.out);
  CHECK(w.reported<LinkLost>().empty());
  w.mesh.up(4, words(3, 31), w.out);
  REQUIRE(w.reported<Ready>().size() == 1);
  CHECK(w.reported<Ready>()[0].view == 2);
  w.out.clear();
  w.members(1);
  CHECK(w.out.empty());
}

TEST_CASE("a worker that is refused says so, and not that its master is lost") {
  Worker late;
  late.mesh.up(kMaster, {}, late.out);
  late.mesh.down(kMaster, failed_precondition("the job has all its workers"), late.out);
  says(late.ended(), Code::failed_precondition,
       "the master refused this worker: the job has all its workers");
  Worker alone;
  alone.mesh.down(kMaster, deadline_exceeded("nobody answers"), alone.out);
  says(alone.ended(), Code::unavailable, "this worker cannot join its master: nobody answers");
  Worker early;  // whose master ends while it joins
  early.mesh.down(kMaster, cancelled("the transport shut down"), early.out);
  says(early.ended(), Code::unavailable,
       "this worker cannot join its master: the transport shut down");
  Worker member;
  member.join();
  member.mesh.down(kMaster, unavailable("silent for 2000 ms"), member.out);
  says(member.ended(), Code::unavailable, "the master is lost: silent for 2000 ms");
}

TEST_CASE("a worker that cannot make its devices tells the master why and ends") {
  Worker w;
  Welcome welcome;
  welcome.process = 2;
  w.mesh.welcome(welcome, w.out);
  w.mesh.hosting(not_found("no such device"), w.out);
  REQUIRE(w.reported<Ready>().size() == 1);
  CHECK(w.reported<Ready>()[0].status.code() == Code::not_found);
  CHECK(w.all<Mesh::Close>()[0].peer == kMaster);
  says(w.ended(), Code::not_found, "no such device");
}

TEST_CASE("a worker learns where every task is before it says that it is connected") {
  Worker w;
  w.welcome();
  w.members();
  const auto places = w.all<Mesh::Place>();
  REQUIRE(places.size() == 3);
  for (std::uint32_t task = 0; task < 3; ++task) {
    CHECK(places[task].task == TaskId(task));
    CHECK(places[task].process == task + 1);
  }
  CHECK(w.reported<Ready>().empty());
}

TEST_CASE("members that mean nothing end a worker with the reason") {
  auto ended_by = [](const std::vector<Member>& members) {
    Worker w;
    w.welcome();
    w.mesh.members({1, members}, w.out);
    return w.ended().code();
  };
  const Member self{2, TaskId{1}, kOwn, "two", 2};
  CHECK(ended_by({}) == Code::invalid_argument);
  CHECK(ended_by({{2, TaskId{1}, kOwn + 1, "two", 2}}) == Code::invalid_argument);
  CHECK(ended_by({self, self}) == Code::invalid_argument);
  CHECK(ended_by({self, {0, TaskId{0}, 1, "master", 1}}) == Code::invalid_argument);
  CHECK(ended_by({self, {3, TaskId{1}, 1, "three", 3}}) == Code::invalid_argument);  // its task
  Worker early;
  early.members();
  CHECK(early.ended().code() == Code::invalid_argument);
  Worker leaves;
  leaves.join();
  leaves.mesh.leave(leaves.out);
  CHECK(leaves.ended().ok());
  leaves.mesh.down(kMaster, unavailable("gone"), leaves.out);
  CHECK(leaves.all<Mesh::End>().size() == 1);
}
