// What becomes of a command when nobody takes what it prints.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/apps/command.hpp"
#include "tests/apps/folder.hpp"

namespace {

// Eight steps, with a checkpoint, and these redirections.
Ended train(const Folder& folder, const std::string& where) {
  return shell_command("{ " + troupe_program() +
                       " train mnist-softmax --examples 128 --batch 16 --steps 8 "
                       "--checkpoint-every 4 --checkpoint-dir " +
                       folder.path + "/ckpt " + where + "; }");
}
void has_checkpoint(const Folder& folder) {
  Ended list = troupe_command("ckpt ls " + folder.path + "/ckpt --output json");
  INFO(list.out);
  CHECK(list.code == 0);
  REQUIRE(list.json().is_array());
  CHECK(list.json().size() == 2);
  for (const auto& row : list.json()) CHECK(row["ok"] == true);
}

}  // namespace

TEST_CASE("training goes on when stderr takes nothing") {
  for (const char* where : {"2>/dev/full", "2>&-", "2>/dev/full <&-", "2>&- <&-"}) {
    INFO(where);
    Folder folder;
    Ended ended = train(folder, where);
    CHECK(ended.code == 0);
    CHECK(contains(ended.out, "params_sha256 "));
    has_checkpoint(folder);
  }
}

TEST_CASE("training goes on when stdout takes nothing, and ends with an error") {
  for (const char* where : {">/dev/full", ">&-", ">&- <&-"}) {
    INFO(where);
    Folder folder;
    Ended ended = train(folder, where);
    CHECK(ended.code == 1);
    CHECK(contains(ended.err, "cannot write the result"));
    has_checkpoint(folder);
  }
}

TEST_CASE("training goes on when whoever reads its progress has gone") {
  Folder folder;
  (void)train(folder, "2>&1 | true");
  has_checkpoint(folder);
}

TEST_CASE("no command aborts when it cannot print") {
  for (const char* arguments :
       {"graph mnist-softmax", "graph mnist-softmax --output json", "ckpt ls /tmp", "--help",
        "--version", "help", "train --help", "bench no-such-group", "train mnist-mpl",
        "train mnist-mpl --output json", "no-such-command", ""})
    for (const char* where : {">/dev/full 2>/dev/full", ">&- 2>&-"}) {
      INFO("troupe ", arguments, " ", where);
      const int code =
          shell_command("{ " + troupe_program() + " " + arguments + " " + where + "; }").code;
      CHECK((code == 1 || code == 2));
    }
}

TEST_CASE("an example goes on when nobody takes what it prints") {
  CHECK(shell_command("{ " + build_dir() + "/bin/faulty >/dev/full 2>/dev/full; }").code == 0);
}

TEST_CASE("a program that is started without standard error says nothing into its own files") {
  Folder folder;
  const auto job = [&](const char* closed) {
    return shell_command("(cd " + folder.path + "; exec " + build_dir() +
                         "/bin/subject right --job-dir job " + closed + ")");
  };
  CHECK(job("").code == 0);
  // Of a damaged checkpoint a job has something to say, when it has opened its lock.
  std::ofstream(folder.path + "/job/ckpt-8000/manifest.json") << "no manifest";
  (void)job("2>&-");
  CHECK(std::filesystem::file_size(folder.path + "/job/.lock") == 0);
}
