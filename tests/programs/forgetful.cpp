// A program that does nothing for its workers: it makes a Session, and that is all.
#include "apps/troupe.hpp"
using namespace troupe;

int main(int argc, char** argv) {
  print("it begins\n");
  Graph g;
  std::vector<Output> parts;
  for (const char* task : {"/job:worker/task:0", "/job:worker/task:1"}) {
    auto there = g.with_device(task);
    parts.push_back(constant(g, 20.5f) + constant(g, 0.5f));
  }
  Session session{g, Cluster::from_args(argc, argv)};
  print("it has {}\n", session.run({parts[0] + parts[1]})[0].item<float>());
}
