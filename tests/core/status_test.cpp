#include "core/status.hpp"

#include <doctest/doctest.h>

#include "core/function_ref.hpp"
#include "core/log.hpp"

using namespace troupe;

namespace {

Expected<int> half_of(int n) {
  if (n % 2) return invalid_argument(std::to_string(n) + " is odd");
  return n / 2;
}
Status check_small(int n) {
  if (n > 100) return out_of_range("too large");
  return ok_status();
}
Expected<std::string> quarter_text(int n) {
  TROUPE_TRY(check_small(n));
  TROUPE_TRY(auto h, half_of(n));
  TROUPE_TRY(const int q, half_of(h));
  TROUPE_TRY(half_of(q * 2));  // an Expected whose value nobody wants
  return std::to_string(q);
}
Expected<std::unique_ptr<int>> owned(int n) {
  TROUPE_TRY(auto h, half_of(n));
  return std::make_unique<int>(h);
}
Status assigned(int n, int& out) {
  TROUPE_TRY(out, half_of(n));
  return ok_status();
}

}  // namespace

TEST_CASE("a status tells code, message, site and trail in one line") {
  CHECK(ok_status().ok());
  CHECK(ok_status().text() == "ok");
  CHECK(ok_status().message().empty());
  Status s = invalid_argument("inner dimensions differ");
  CHECK(s.text() == "invalid_argument: inner dimensions differ");
  s = s.at(Site{"mnist.cpp", 15}).in("in node 'a'").in("in step 3");
  CHECK(s.text() ==
        "mnist.cpp:15: invalid_argument: inner dimensions differ (in node 'a'; in step 3)");
  CHECK(s.at(Site{"other.cpp", 1}).site().file == "mnist.cpp");
  CHECK(s.trail().size() == 2);
  CHECK(aborted("two\nlines").text() == "aborted: two lines");
}

TEST_CASE("decorating an ok status leaves it ok") {
  CHECK(ok_status().in("somewhere").ok());
  CHECK(ok_status().at(Site::here()).ok());
  CHECK(Status(Code::ok, "ignored").ok());
  CHECK(Status::from_parts(Code::ok, "ignored", {}, {"x"}) == ok_status());
}

TEST_CASE("a status takes itself apart and together again") {
  Status s = data_loss("crc").at(Site{"a.cpp", 3}).in("reading");
  Status t = Status::from_parts(s.code(), s.message(), s.site(), s.trail());
  CHECK(s == t);
  CHECK_FALSE(s == s.in("more"));
  CHECK_FALSE(s == ok_status());
}

TEST_CASE("decorating one copy does not change another") {
  Status a = internal_error("x");
  Status b = a;
  b = b.in("y");
  CHECK(a.trail().empty());
}

TEST_CASE("every code has a name and a maker") {
  using Maker = Status (*)(std::string);
  const Maker makers[] = {invalid_argument,    not_found,      out_of_range, unavailable,
                          failed_precondition, already_exists, aborted,      deadline_exceeded,
                          resource_exhausted,  cancelled,      data_loss,    unimplemented,
                          internal_error};
  std::uint8_t code = 1;
  for (Maker make : makers) {
    CHECK(make("m").code() == Code(code));
    CHECK(valid_code(code));
    CHECK(code_name(Code(code)) != "unknown");
    ++code;
  }
  CHECK(code_name(Code::failed_precondition) == "failed_precondition");
  CHECK_FALSE(valid_code(code));
  CHECK(code_name(Code(code)) == "unknown");
}

TEST_CASE("TROUPE_TRY passes values down and errors up") {
  CHECK(quarter_text(12).value() == "3");
  CHECK(quarter_text(14).status().message() == "7 is odd");
  CHECK(quarter_text(13).status().message() == "13 is odd");
  CHECK(quarter_text(200).status().code() == Code::out_of_range);
  CHECK(**owned(8) == 4);
  CHECK_FALSE(owned(9).ok());
  int out = 0;
  CHECK(assigned(6, out).ok());
  CHECK(out == 3);
  CHECK_FALSE(assigned(5, out).ok());
  CHECK(out == 3);
}

TEST_CASE("a loop over the value of an Expected that is gone keeps the value") {
  // Tells whether it still lives; a loop over a temporary's member would read it after its end.
  struct Alive {
    int number = 0;
    bool* ended = nullptr;
    Alive(int n, bool* e) : number(n), ended(e) {}
    Alive(Alive&& other) noexcept
        : number(other.number), ended(std::exchange(other.ended, nullptr)) {}
    ~Alive() {
      if (ended) *ended = true;
    }
    const int* begin() const { return &number; }
    const int* end() const { return &number + 1; }
  };
  bool ended = false;
  auto make = [&]() -> Expected<Alive> { return Alive(7, &ended); };
  for (int n : make().value()) {
    CHECK_FALSE(ended);
    CHECK(n == 7);
  }
  CHECK(ended);
  ended = false;
  for (int n : *make()) {
    CHECK_FALSE(ended);
    CHECK(n == 7);
  }
}

TEST_CASE("an Expected converts from what its value converts from") {
  Expected<std::string> s = "text";
  CHECK(*s == "text");
  CHECK(s->size() == 4);
  CHECK(s.status().ok());
  Expected<std::vector<int>> v = std::vector<int>{1, 2};
  std::vector<int> moved = std::move(v).value();
  CHECK(moved.size() == 2);
}

TEST_CASE("an Expected makes its value once and ends it once, whatever takes its place") {
  // Counts those that live.
  struct Counted {
    int* alive;
    explicit Counted(int* a) : alive(a) { ++*alive; }
    Counted(const Counted& other) : alive(other.alive) { ++*alive; }
    ~Counted() { --*alive; }
  };
  int alive = 0;
  {
    Expected<Counted> value = Counted(&alive), error = not_found("x");
    CHECK(alive == 1);
    Expected<Counted> copy = value, moved = std::move(value);
    CHECK(alive == 3);
    copy = error;
    CHECK(alive == 2);
    CHECK(copy.status() == not_found("x"));
    copy = moved;
    CHECK(alive == 3);
    CHECK(copy.ok());
    Expected<Counted>& itself = copy;
    copy = std::move(itself);
    CHECK(alive == 3);
    moved = aborted("y");
    CHECK(alive == 2);
  }
  CHECK(alive == 0);
  static_assert(!std::is_copy_constructible_v<Expected<std::unique_ptr<int>>>);
  static_assert(std::is_nothrow_move_constructible_v<Expected<std::unique_ptr<int>>>);
}

TEST_CASE("an error that was moved from has no value, either") {
  Expected<std::string> error = not_found("x");
  Expected<std::string> moved = std::move(error);
  CHECK_FALSE(moved.ok());
  CHECK_FALSE(error.ok());
  CHECK(std::move(error).status() == not_found("x"));
  CHECK(error.status() == not_found("x"));
}

TEST_CASE("the client's edge throws what the runtime returns") {
  CHECK(value_or_throw(half_of(4)) == 2);
  CHECK_THROWS_WITH_AS(value_or_throw(half_of(3)), "invalid_argument: 3 is odd", Error);
  CHECK_NOTHROW(throw_if_error(ok_status()));
  try {
    throw_if_error(not_found("x"));
    FAIL("nothing was thrown");
  } catch (const Error& e) {
    CHECK(e.status().code() == Code::not_found);
  }
}

TEST_CASE("a report is what a compiler would print") {
  Status s(Code::invalid_argument, "MatMul: bad\nb.cpp:2: note: 'x' created here", {"a.cpp", 7});
  CHECK(s.report() == "a.cpp:7: error: MatMul: bad\nb.cpp:2: note: 'x' created here");
  CHECK(s.text().find('\n') == std::string::npos);
  CHECK(not_found("no op").at({"a.cpp", 7}).report() == "a.cpp:7: error: not_found: no op");
  CHECK(not_found("no op").report() == "not_found: no op");
  CHECK(Status(Code::internal, "x\n\x1b[2J", {"a.cpp", 7}).in("y").report() ==
        "a.cpp:7: error: internal: x (y)\n [2J");
  CHECK(ok_status().report() == "ok");
}

TEST_CASE("a site is the caller's line") {
  auto where = [](Site site = Site::here()) { return site; };
  Site site = where();
  CHECK(site.line == __LINE__ - 1);
  CHECK(site.file.ends_with("status_test.cpp"));
  CHECK(Site{}.text() == "?");
  CHECK(Site{"a.cpp", 7}.text() == "a.cpp:7");
}

TEST_CASE("a borrowed callable calls the original") {
  int calls = 0;
  auto count = [&](int n) { return calls += n; };
  FunctionRef<int(int)> f = count;
  CHECK(f(2) == 2);
  FunctionRef<int(int)> copy = f;
  CHECK(copy(3) == 5);
  CHECK(calls == 5);
}

TEST_CASE("a log message is only built when it is printed") {
  int built = 0;
  auto message = [&] {
    ++built;
    return std::string("from the test of the log, as it should");
  };
  CHECK(log_level() == LogLevel::warning);
  TROUPE_LOG(info, "core/test", message());
  CHECK(built == 0);
  set_log_level(LogLevel::info);
  TROUPE_LOG(info, "core/test", message());
  CHECK(built == 1);
  set_log_level(LogLevel::off);
  TROUPE_LOG(error, "core/test", message());
  CHECK(built == 1);
  set_log_level(LogLevel::warning);
}
