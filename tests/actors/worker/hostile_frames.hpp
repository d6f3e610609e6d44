// Frames that are nearly right: genuine messages and tensors of a job, with fields, bytes and
// lengths changed at random.
#pragma once

#include "tests/actors/worker/hostile_job.hpp"
#include "tests/serialization/random_values.hpp"

namespace troupe::testing {

class HostileFrames {
 public:
  HostileFrames(const JobProgram& program, std::uint64_t seed)
      : program_(program),
        random_(seed),
        values_{Random(seed + 1)},
        resources_(resources_of(program)) {}

  // A message that decodes: right but for some of its fields, or with bytes changed that happen to
  // leave it well-formed. Of the kinds that do not end a worker. Sometimes a long one, in parts
  // with others between them, or the beginning of one that never ends.
  std::string message();
  // A whole control frame that is refused: changed somewhere, repaired or not, or of a kind that
  // only workers send. Or several: parts of a message that do not fit each other.
  std::string refused();
  // A tensor, its tag and its frame nearly right.
  std::string tensor(std::uint64_t transfer, bool of_member);
  // The first bytes of a stranger.
  std::string stranger();
  Welcome welcome();

  Random& random() { return random_; }

 private:
  bool one_in(std::uint64_t n) { return random_.below(n) == 0; }
  std::uint64_t odd();
  template <class T>
  void maybe(T& number, std::uint64_t n = 12) {
    if (one_in(n)) number = T(odd());
  }
  // The ids of the victim's resources, and one that none has.
  static std::vector<std::uint64_t> resources_of(const JobProgram& program);
  AttemptInfo attempt();
  Tensor feed();
  WireMessage plausible();
  std::string good();
  std::string in_parts();
  std::string wrong_parts();
  GraphDef graph();
  void spoil(NodeDef& node);
  LoadStep load_step();
  std::string list();
  void change(std::string& bytes);

  const JobProgram& program_;
  Random random_;
  Values values_;
  const std::vector<std::uint64_t> resources_;
  std::uint64_t attempts_ = 2, commits_ = 1, rounds_ = 1, lists_ = 1;
  bool unfinished_ = false;  // the beginning of a long message was said: no other may follow
};

}  // namespace troupe::testing
