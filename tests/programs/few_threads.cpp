// To be preloaded: at most MOST_THREADS threads live beside the first one; more are refused, as
// where a control group allows no more tasks.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>

namespace {

using Body = void* (*)(void*);
using Create = int (*)(pthread_t*, const pthread_attr_t*, Body, void*);

std::atomic<int> alive{0};

struct Work {
  Body body;
  void* argument;
};

void* run(void* work) {
  const std::unique_ptr<Work> own(static_cast<Work*>(work));
  void* result = own->body(own->argument);
  alive.fetch_sub(1);
  return result;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* how,
                                                                     Body body, void* argument) {
  static const Create create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  const char* most = std::getenv("MOST_THREADS");
  if (alive.fetch_add(1) >= (most ? std::atoi(most) : 0)) {
    alive.fetch_sub(1);
    return EAGAIN;
  }
  auto work = std::make_unique<Work>(Work{body, argument});
  const int error = create(thread, how, run, work.get());
  if (error == 0)
    (void)work.release();
  else
    alive.fetch_sub(1);
  return error;
}
