// A locale that writes numbers with a decimal comma and dots between thousands, for C and C++.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <clocale>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <locale>
#include <string>

namespace troupe::test {

// The process is under such a locale while it lives. C++'s is made of a facet; C's is compiled by
// localedef into a folder of its own, and left out, with a line that says so, where that program is
// not installed.
class CommaLocale {
 public:
  CommaLocale()
      : old_c_(std::setlocale(LC_ALL, nullptr)),
        old_(std::locale::global(std::locale(std::locale(), new Comma))) {
    std::string folder = (std::filesystem::temp_directory_path() / "troupe-locale-XXXXXX").string();
    REQUIRE(mkdtemp(folder.data()) != nullptr);
    folder_ = folder;
    std::ofstream(folder_ + "/source") << "comment_char %\nescape_char /\nLC_NUMERIC\n"
                                          "decimal_point \",\"\nthousands_sep \".\"\n"
                                          "grouping 3;3\nEND LC_NUMERIC\n";
    const std::string command = "localedef -c --no-archive -i '" + folder_ + "/source' '" +
                                folder_ + "/comma' >/dev/null 2>&1";
    [[maybe_unused]] const int ignored = std::system(command.c_str());  // warns of what is left out
    setenv("LOCPATH", folder_.c_str(), 1);
    const bool set = std::setlocale(LC_NUMERIC, "comma") != nullptr;
    unsetenv("LOCPATH");
    if (!set) {
      MESSAGE("C's locale is not tested: localedef made none");
      return;
    }
    char text[8];
    std::snprintf(text, sizeof text, "%.1f", 1.5);
    REQUIRE(std::string(text) == "1,5");
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;
  ~CommaLocale() {
    std::locale::global(old_);
    std::setlocale(LC_ALL, old_c_.c_str());
    std::filesystem::remove_all(folder_);
  }

 private:
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::string old_c_, folder_;
  std::locale old_;
};

}  // namespace troupe::test
