// TFRecord files and records of fixed length: what is read, written, and refused.
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>

#include "ops/data/records/record_frame.hpp"
#include "ops/data/records/record_stream.hpp"
#include "tests/core/file_limit.hpp"
#include "tests/ops/data/gzip.hpp"
#include "tests/ops/data/values.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

std::string framed(const std::string& content) {
  return record_head(content.size()) + content + record_tail(content);
}

std::string record_content(const Values& values) { return values[0].item<std::string>(); }

std::vector<std::string> record_contents(const data::Examples& examples) {
  const auto all = elements_in_order(examples);
  REQUIRE_MESSAGE(all.ok(), all.status().text());
  std::vector<std::string> out;
  for (const Values& values : *all) out.push_back(record_content(values));
  return out;
}

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

using RecordTexts = std::vector<std::string>;
using data::FileList;

// No more open files than that, while it lives.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t most) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit lowered{most, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &lowered) == 0);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("a frame is what TensorFlow writes") {
  // The checksum of nothing, and of "123456789", masked.
  CHECK(record_checksum("") == 0xa282ead8u);
  CHECK(record_checksum("123456789") == ((0xe3069283u >> 15 | 0xe3069283u << 17) + 0xa282ead8u));
  // tf.io.TFRecordWriter of b"abc".
  const std::string frame = framed("abc");
  CHECK(frame.size() == 12 + 3 + 4);
  CHECK(frame.substr(0, 8) == std::string("\3\0\0\0\0\0\0\0", 8));
  CHECK(record_length(frame.substr(0, 12)) == 3);
  RecordChecksum abc, abd;
  abc.add("a"), abc.add(""), abc.add("bc"), abd.add("abd");
  CHECK(ends_record(abc, frame.substr(15)));
  CHECK_FALSE(ends_record(abd, frame.substr(15)));
  CHECK_FALSE(record_length(std::string(12, '\0')));
}

TEST_CASE("records are read as they were written, packed in any way") {
  const DataDirectory files;
  const RecordTexts texts = {"one", "", std::string(200'000, 'x'), std::string("\0\xff\n", 3)};
  for (const data::Packing packing :
       {data::Packing::none, data::Packing::gzip, data::Packing::zlib}) {
    const std::string path = files.path("data" + std::to_string(int(packing)));
    data::RecordWriter writer(path, packing);
    for (const std::string& text : texts) REQUIRE(writer.write(text).ok());
    CHECK_FALSE(std::filesystem::exists(path));  // not before it is whole
    REQUIRE(writer.finish().ok());
    CHECK_FALSE(std::filesystem::exists(path + ".part"));
    CHECK(writer.write("more").code() == Code::failed_precondition);
    CHECK(record_contents(data::tf_records({path})) == texts);
    CHECK(record_contents(data::tf_records({path}, {.packing = packing})) == texts);
    check_places(data::tf_records({path, path}), 3);
  }
  CHECK(slurp(files.path("data1")) ==
        framed("one") + framed("") + framed(texts[2]) + framed(texts[3]));
  CHECK(slurp(files.path("data2")).size() < 1000);
}

TEST_CASE("records that do not become smaller are written as they are") {
  const DataDirectory files;
  Random random(3);
  RecordTexts texts(4);
  for (std::string& text : texts)
    for (std::uint64_t n = 1 + random.below(400'000); n > 0; --n) text += char(random());
  for (const data::Packing packing :
       {data::Packing::none, data::Packing::gzip, data::Packing::zlib}) {
    data::RecordWriter writer(files.path("a"), packing);
    for (const std::string& text : texts) REQUIRE(writer.write(text).ok());
    REQUIRE(writer.finish().ok());
    CHECK(record_contents(data::tf_records({files.path("a")})) == texts);
  }
}

TEST_CASE("a writer that is not finished leaves nothing behind") {
  const DataDirectory files;
  const std::string path = files.path("a.tfrecord");
  files.write("a.tfrecord", "what was there");
  {
    data::RecordWriter writer(path);
    CHECK(writer.write("x").ok());
  }
  CHECK(slurp(path) == "what was there");
  CHECK_FALSE(std::filesystem::exists(path + ".part"));
  CHECK(data::RecordWriter::create(files.path("absent/a")).status().code() == Code::not_found);
  CHECK(data::RecordWriter::create(path, data::Packing::detect).status().code() ==
        Code::invalid_argument);
  CHECK_THROWS_AS(data::RecordWriter(files.path("absent/a")), Error);
}

TEST_CASE("records for which there is no room are an error of the writer, and leave nothing") {
  const DataDirectory files;
  const std::string path = files.path("a");
  {
    data::RecordWriter writer(path);
    CHECK(writer.write(std::string(10'000, 'x')).ok());  // so far it is in memory
    const Status status = [&] {
      const troupe::testing::FileLimit limit(1000);
      return writer.finish();
    }();
    CHECK(status.text().find("File too large") != std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_FALSE(std::filesystem::exists(path + ".part"));
}

// Both would write into one file, which then has the name of a whole one.
TEST_CASE("a file of records has one writer at a time") {
  const DataDirectory files;
  const std::string path = files.path("a.tfrecord");
  files.write("a.tfrecord.part", std::string(1000, 'x'));  // of a killed process
  data::RecordWriter writer(path);
  REQUIRE(writer.write("first").ok());
  const Status other = data::RecordWriter::create(path).status();
  CHECK(other.code() == Code::failed_precondition);
  CHECK_MESSAGE(other.message().find("somebody else writes") != std::string::npos, other.text());
  REQUIRE(writer.finish().ok());
  CHECK(slurp(path) == framed("first"));
  data::RecordWriter again(path);  // the finished one holds nothing
  REQUIRE(again.write("second").ok());
  CHECK(slurp(path) == framed("first"));
  REQUIRE(again.finish().ok());
  CHECK(slurp(path) == framed("second"));
}

TEST_CASE("a plain file that begins as a packed one does is read as a plain one") {
  const DataDirectory files;
  const std::string gzipped(0x08'8b1f, 'a');  // its length is 1f 8b 08 00 ...
  const std::string zlibbed(0x9c78, 'b');     // and 78 9c
  files.write("a", framed(gzipped));
  files.write("b", framed(zlibbed));
  CHECK(record_contents(data::tf_records(files.path("[ab]"))) == RecordTexts{gzipped, zlibbed});
  // Said to be packed, they are not.
  CHECK(tells(error_in_order(data::tf_records({files.path("b")}, {.packing = data::Packing::zlib})),
              "zlib content"));
}

TEST_CASE("files of a pattern are read in the order of their names' bytes") {
  const DataDirectory files;
  for (const char* name : {"b-2", "b-10", "B-1", "c", "a-1"}) files.write(name, framed(name));
  CHECK(record_contents(data::tf_records(files.path("[bB]-*"))) ==
        RecordTexts{"B-1", "b-10", "b-2"});
  CHECK(record_contents(data::tf_records({files.path("c"), files.path("a-1")})) ==
        RecordTexts{"c", "a-1"});
  try {
    data::tf_records(files.path("x*"));
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.status().code() == Code::not_found);
    CHECK(tells(e.status(), "x*"));
  }
  CHECK(tells(data::tf_records(std::vector<std::string>()).signature().status(),
              "the list of files is empty"));
}

TEST_CASE("several files are read in turn, and the next takes the place of one that ends") {
  const DataDirectory files;
  files.write("a", framed("a1") + framed("a2") + framed("a3"));
  files.write("b", framed("b1"));
  files.write("c", framed("c1") + framed("c2"));
  const auto all = data::tf_records(files.path("[abc]"), {.at_once = 2});
  CHECK(record_contents(all) == RecordTexts{"a1", "b1", "a2", "c1", "a3", "c2"});
  check_places(all.shuffle(3, 5).repeat(2), 11);
}

TEST_CASE("more files than may be open are read, and one that changed in between is refused") {
  const DataDirectory files;
  RecordTexts names;
  for (int i = 10; i < 60; ++i) {
    names.push_back(std::to_string(i));
    files.write(names.back(), framed(names.back() + "a") + framed(names.back() + "b"));
  }
  const auto all = data::tf_records(files.path("*"));
  std::optional<FewDescriptors> few(40);
  for (const auto& read : {all, data::tf_records(files.path("*"), {.at_once = 4})}) {
    CHECK(record_contents(read).size() == 100);
    check_places(read.repeat(2), 1);
  }
  few.reset();
  Pipeline pipeline = open_examples(all).value();
  REQUIRE(pipeline.element(0).ok());
  files.write("30", framed("other") + framed("ones"));
  const Status changed = pipeline.element(40).status();
  CHECK_MESSAGE(changed.code() == Code::failed_precondition, changed.text());
  CHECK(tells(changed, "has changed since it was opened"));
}

TEST_CASE("damaged records are refused by file, record and byte") {
  const DataDirectory files;
  const std::string good = framed("first") + framed("second") + framed("third");
  const std::size_t second = framed("first").size(), third = second + framed("second").size();
  const auto error = [&](std::string content) {
    return error_in_order(data::tf_records({files.write("x.tfrecord", content)}));
  };
  const auto with = [&](std::size_t at, char byte) {
    std::string damaged = good;
    damaged[at] = byte;
    return damaged;
  };
  CHECK(tells(error(with(second + 14, '!')),
              "record 1 at byte " + std::to_string(second) + " of file '"));
  CHECK(tells(error(with(second + 14, '!')), "its content has another checksum"));
  CHECK(tells(error(with(third, 6)), "record 2 at byte " + std::to_string(third)));
  CHECK(tells(error(with(third, 6)), "its length has another checksum"));
  CHECK(tells(error(good.substr(0, third + 3)), "the file ends inside of it"));
  CHECK(tells(error(good + "x"), "record 3"));
  CHECK(tells(error("plain text and nothing else"), "no TFRecord file"));
  for (const Status& status : {error(with(second + 14, '!')), error(good.substr(0, third + 3))})
    CHECK(status.code() == Code::data_loss);
  CHECK(error("").ok());  // no records
}

TEST_CASE("every damage to a file of records is an error, or is where nobody looks") {
  const std::string content = framed("one") + framed("") + framed("three");
  const RecordTexts texts = {"one", "", "three"};
  // Cut between two records, a file is a shorter one.
  const auto right = [&](const std::vector<Values>& all) {
    if (all.size() > texts.size()) return false;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (record_content(all[i]) != texts[i]) return false;
    return true;
  };
  const auto all = data::tf_records({"records"});
  CHECK(check_damages(content, all, right) == int(4 * content.size()) - 3);
  // In gzip's header there are bytes without a meaning: a time, a system.
  CHECK(check_damages(gzip(content), all, right) > 100);
}

TEST_CASE("a record of more bytes than allowed takes no memory") {
  const DataDirectory files;
  for (const std::uint64_t length : {std::uint64_t{1} << 63, ~std::uint64_t{0},
                                     std::uint64_t{300} << 20, (std::uint64_t{1} << 63) - 1}) {
    files.write("huge", framed("a") + record_head(length) + "bcd");
    files.write("packed", gzip(record_head(length) + "bcd"));
    for (const char* name : {"huge", "packed"}) {
      const Status status = error_in_order(data::tf_records({files.path(name)}));
      CHECK(status.code() == Code::data_loss);
      CHECK_MESSAGE(tells(status, std::to_string(length) + " bytes, and no more than 268435456"),
                    status.text());
    }
  }
  // As long as allowed, and not there.
  files.write("short", record_head(std::uint64_t{200} << 20) + "bcd");
  CHECK(tells(error_in_order(data::tf_records({files.path("short")})), "ends inside of it"));
  // A bomb: 16 MiB of zeros in some kilobytes.
  files.write("bomb", gzip(framed(std::string(std::size_t{16} << 20, '\0'))));
  CHECK(tells(error_in_order(data::tf_records({files.path("bomb")}, {.most_bytes = 1 << 20})),
              "16777216 bytes, and no more than 1048576 are allowed"));
}

TEST_CASE("bad records are skipped, so many in a pass and no more") {
  const QuietLog quiet;
  const DataDirectory files;
  std::string content;
  RecordTexts texts;
  for (int i = 0; i < 20; ++i) {
    std::string one = framed("record " + std::to_string(i));
    if (i % 5 == 2) one[14] ^= 1;  // four of them
    if (i % 5 != 2) texts.push_back("record " + std::to_string(i));
    content += one;
  }
  const auto all = data::tf_records({files.write("a", content)});
  CHECK(record_contents(all.skip_errors(4)) == texts);
  CHECK(record_contents(all.skip_errors(1000)) == texts);
  check_places(all.skip_errors(4).shuffle(3, 5).repeat(3), 7);
  CHECK(record_contents(all.skip_errors(4).repeat(2)).size() == 2 * texts.size());
  const Status status = error_in_order(all.skip_errors(3));
  CHECK_MESSAGE(tells(status, "record 17 at byte"), status.text());
  CHECK_MESSAGE(tells(status, "after 3 examples were skipped, as many as may be"), status.text());
  CHECK(status.code() == Code::data_loss);
  CHECK(tells(error_in_order(all.skip_errors(0)), "record 2 at byte"));
  // What is behind a wrong length is lost up to the end of its file.
  std::string cut = content;
  cut[framed("record 0").size()] ^= 1;
  files.write("a", cut);
  files.write("b", framed("b"));
  CHECK(record_contents(data::tf_records(files.path("[ab]")).skip_errors(1)) ==
        RecordTexts{"record 0", "b"});
  check_places(data::tf_records(files.path("[ab]")).skip_errors(1), 2);
  // A packed file that breaks off.
  const std::string packed = gzip(content);
  files.write("a", packed.substr(0, packed.size() - 6));
  CHECK(record_contents(data::tf_records(files.path("[ab]")).skip_errors(5)).back() == "b");
  // A file that is not there is no damage.
  CHECK(error_in_order(data::tf_records({files.path("absent")}).skip_errors(5)).code() ==
        Code::not_found);
}

TEST_CASE("bad lines of text are skipped as bad records are") {
  const DataDirectory files;
  const QuietLog quiet;
  const auto numbers = data::csv(files.write("a.csv", "1\nx\n3\n1,2\n5\n"), {{.dtype = DType::i64}},
                                 {.header = false});
  const auto all = elements_in_order(numbers.skip_errors(2));
  REQUIRE_MESSAGE(all.ok(), all.status().text());
  REQUIRE(all->size() == 3);
  CHECK((*all)[2][0].item<std::int64_t>() == 5);
  check_places(numbers.skip_errors(2).repeat(2), 4);
  CHECK(tells(error_in_order(numbers.skip_errors(1)), "line 4: 2 cells, not 1"));
  // A quote that does not close has no end that anybody knows.
  files.write("a.csv", "1\n\"2\n3\n");
  CHECK(tells(error_in_order(numbers.skip_errors(9)), "a quote that is not closed"));
  const auto letters = data::lines(files.write("b", "ab\nxy\nb\n"), data::Vocabulary("ab"));
  CHECK(elements_in_order(letters.skip_errors(1))->size() == 2);
}

TEST_CASE("bad lines and records have their numbers for stages that skip, too") {
  const DataDirectory files;
  const QuietLog quiet;
  const auto numbers = data::csv(files.write("a.csv", "0\nx\n2\n3\n4\n5\n"),
                                 {{.dtype = DType::i64}}, {.header = false});
  const auto left = [](const data::Examples& examples) {
    const auto all = elements_in_order(examples.skip_errors(9));
    REQUIRE_MESSAGE(all.ok(), all.status().text());
    std::vector<std::int64_t> out;
    for (const Values& values : *all) out.push_back(values[0].item<std::int64_t>());
    return out;
  };
  using Numbers = std::vector<std::int64_t>;
  CHECK(left(numbers.shard(2, 0)) == Numbers{0, 2, 4});
  CHECK(left(numbers.shard(2, 1)) == Numbers{3, 5});
  CHECK(left(numbers.skip(3)) == Numbers{3, 4, 5});
  CHECK(left(numbers.take(3)) == Numbers{0, 2});
  CHECK(left(numbers.shard(3, 2).repeat(2)) == Numbers{2, 5, 2, 5});
  for (const auto& part : {numbers.shard(2, 0), numbers.skip(3), numbers.take(4).repeat(2)})
    check_places(part.skip_errors(9), 5);
  const auto pairs = data::csv(files.write("p.csv", "0,1\nx\n20,21\n30,31\n"),
                               {{.dtype = DType::i64, .cells = 2}}, {.header = false})
                         .unbatch();
  CHECK(left(pairs) == Numbers{0, 1, 20, 21, 30, 31});
  CHECK(left(pairs.shard(2, 0)) == Numbers{0, 20, 30});  // the bad one is two bad rows
  CHECK(left(pairs.shard(2, 1)) == Numbers{1, 21, 31});
  CHECK(left(pairs.shard(3, 0)) == Numbers{0, 30});
  CHECK(left(pairs.skip(3)) == Numbers{20, 21, 30, 31});
  // A position inside of the bad one that is remembered while rows are mapped ahead.
  check_places(pairs.repeat(3).skip_errors(99), 3);
  Pipeline pipeline = open_examples(numbers).value();
  CHECK_FALSE(pipeline.element(1).ok());
  CHECK(pipeline.element(3).value()[0].item<std::int64_t>() == 3);

  std::string cut = framed("a0") + framed("a1") + framed("a2");
  cut[framed("a0").size()] ^= 1;  // a length: the rest is lost, as one record
  files.write("a", cut);
  files.write("b", framed("b0") + framed("b1") + framed("b2"));
  const auto records = data::tf_records(files.path("[ab]"));
  CHECK(record_contents(records.shard(2, 0).skip_errors(9)) == RecordTexts{"a0", "b0", "b2"});
  CHECK(record_contents(records.shard(2, 1).skip_errors(9)) == RecordTexts{"b1"});
  // What may be read another time is no bad element.
  CHECK(error_in_order(data::tf_records({files.path("absent"), files.path("b")}).shard(2, 1))
            .code() == Code::not_found);
}

TEST_CASE("a path with a NUL is refused, and nothing is read or written at its beginning") {
  const DataDirectory files;
  const std::string path = files.write("a", "text\n") + std::string("\0x", 2);
  CHECK(tells(error_in_order(data::text_lines(std::vector<std::string>{path})), "with a NUL"));
  CHECK(data::RecordWriter::create(path).status().code() == Code::invalid_argument);
  CHECK_THROWS_WITH_AS(data::files(path), doctest::Contains("with a NUL"), Error);
  CHECK(elements_in_order(data::text_lines(files.path("a")))->size() == 1);
}

TEST_CASE("an element behind a bad record is there, and the bad one is an error each time") {
  const DataDirectory files;
  std::string bad = framed("b");
  bad[12] ^= 1;
  Pipeline pipeline =
      open_examples(data::tf_records({files.write("a", framed("a") + bad + framed("c"))})).value();
  for (int i = 0; i < 2; ++i) {
    CHECK(tells(pipeline.element(1).status(), "record 1 at byte 17"));
    CHECK(record_content(pipeline.element(2).value()) == "c");
    CHECK(record_content(pipeline.element(0).value()) == "a");
  }
}

TEST_CASE("batches of a bucket are there before and behind a bad example, which is one element") {
  const DataDirectory files;
  Pipeline pipeline =
      open_examples(data::lines(files.write("a", "a\nx\nbb\na\nb\nbb\n"), data::Vocabulary("ab"))
                        .bucket_by_length({2}, {2, 2}))
          .value();
  for (int i = 0; i < 2; ++i) {
    CHECK(tells(pipeline.element(0).status(), "line 2"));
    CHECK(pipeline.element(1).value()[0].shape() == Shape{2, 1});
    CHECK(pipeline.element(3).value()[0].shape() == Shape{1, 1});
    CHECK(pipeline.element(2).value()[0].shape() == Shape{2, 2});
    CHECK(is_dataset_end(pipeline.element(4).status()));
  }
}

TEST_CASE("pipes, folders and files without permission are no files of records") {
  const DataDirectory files;
  REQUIRE(::mkfifo(files.path("pipe").c_str(), 0600) == 0);
  CHECK(tells(error_in_order(data::tf_records({files.path("pipe")})), "is no regular file"));
  CHECK(tells(error_in_order(data::tf_records({files.path("")})), "is no regular file"));
  CHECK(tells(error_in_order(data::fixed_records({"/dev/zero"}, 4)), "is no regular file"));
  CHECK(error_in_order(data::tf_records({files.path("a/b")})).code() == Code::not_found);
}

TEST_CASE("a file that becomes shorter while it is read is an error") {
  const DataDirectory files;
  std::string content;
  for (int i = 0; i < 3000; ++i) content += framed(std::string(100, 'a'));
  const std::string path = files.write("a", content);
  Pipeline pipeline = open_examples(data::tf_records({path})).value();
  REQUIRE(pipeline.element(0).ok());
  std::filesystem::resize_file(path, 1000);
  CHECK(pipeline.element(2000).status().code() == Code::failed_precondition);
}

TEST_CASE("lines of text files are read as they are, and files as a whole") {
  const DataDirectory files;
  files.write("a", "one\r\n\ntwo\xff");
  files.write("b.gz", gzip("three\n"));
  files.write("c", "");
  const FileList paths = {files.path("a"), files.path("b"), files.path("c")};
  const auto lines = data::text_lines(paths), whole = data::whole_files(paths);
  CHECK(record_contents(lines) == RecordTexts{"one", "", "two\xff", "three"});
  CHECK(record_contents(whole) == RecordTexts{"one\r\n\ntwo\xff", "three\n", ""});
  check_places(lines.shuffle(2, 1).repeat(2), 3);
  check_places(whole.shuffle(2, 1).repeat(2), 3);
  const std::string packed = gzip("three\n");
  files.write("b.gz", packed.substr(0, packed.size() - 3));
  const QuietLog quiet;
  CHECK(tells(error_in_order(lines), "b.gz"));
  CHECK(record_contents(lines.skip_errors(1)) == RecordTexts{"one", "", "two\xff", "three"});
  CHECK(tells(error_in_order(whole), "b.gz"));
  CHECK(record_contents(whole.skip_errors(1)).size() == 2);
  files.write("a", std::string(std::size_t{65} << 20, 'x'));
  CHECK(tells(error_in_order(lines), "record 0 at byte 0 of file '"));
  CHECK(tells(data::text_lines(std::vector<std::string>()).signature().status(), "is empty"));
  CHECK(tells(data::whole_files(std::vector<std::string>()).signature().status(), "is empty"));
}

TEST_CASE("gzip files that stand one behind another are read as one") {
  const DataDirectory files;
  Random random(5);
  RecordTexts texts(3);
  for (std::string& text : texts)
    for (int i = 0; i < 50'000; ++i) text += char(random());
  const std::string content = framed(texts[0]) + framed(texts[1]) + framed(texts[2]);
  std::string packed = gzip("");
  for (std::size_t at = 0; at < content.size(); at += 7'000)
    packed += gzip(content.substr(at, 7'000)) + gzip("");
  const FileList records = {files.write("records", packed)};
  CHECK(record_contents(data::tf_records(records)) == texts);
  check_places(data::tf_records(records), 3);
  const FileList lines = {files.write("lines.gz", gzip("one\ntw") + gzip("o\n"))};
  CHECK(record_contents(data::text_lines(lines)) == RecordTexts{"one", "two"});
  CHECK(record_contents(data::whole_files(lines)) == RecordTexts{"one\ntwo\n"});
  files.write("lines.gz", gzip("one\n") + gzip("two\n") + "three\n");
  CHECK(tells(error_in_order(data::text_lines(lines)), "6 bytes stand after the end of the gzip"));
}

namespace {

std::string bytes_of_floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace

TEST_CASE("records of fixed length lie between a header and a footer, in any number of files") {
  const DataDirectory files;
  files.write("a", "HEADabcdefFT");
  files.write("b", "HEADFT");
  files.write("c.gz", gzip("HEADghiFT"));
  const auto records = data::fixed_records({files.path("a"), files.path("b"), files.path("c")}, 3,
                                           {.header = 4, .footer = 2});
  const auto all = elements_in_order(records);
  REQUIRE_MESSAGE(all.ok(), all.status().text());
  REQUIRE(all->size() == 3);
  CHECK(Tensor::same((*all)[1][0], Tensor::of<std::uint8_t>({3}, {'d', 'e', 'f'})));
  CHECK(Tensor::same((*all)[2][0], Tensor::of<std::uint8_t>({3}, {'g', 'h', 'i'})));
  const auto batch = elements_in_order(records.batch(3));
  CHECK(Tensor::same((*batch)[0][0], Tensor::of<std::uint8_t>(
                                         {3, 3}, {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'})));
  check_places(records.shuffle(2, 1).repeat(3), 4);
  // At once, however far: nothing is read on the way.
  CHECK(open_examples(records.repeat()).value().element(3'000'000'000'000).ok());
  const auto error = [&](std::int64_t bytes, const data::FixedRecordOptions& options) {
    return error_in_order(data::fixed_records({files.path("a")}, bytes, options));
  };
  CHECK(tells(error(5, {}), "12 bytes of records are no multiple of 5"));
  CHECK(tells(error(3, {.header = 10, .footer = 3}), "fewer than the header of 10"));
  CHECK(tells(error(3, {.header = 10, .footer = 3}), "/a'"));
  files.write("numbers", std::string("H") + bytes_of_floats({1.5f, -2, 0.25f, 8}));
  const auto numbers =
      data::fixed_records({files.path("numbers")}, 8, {.header = 1, .dtype = DType::f32});
  const auto pairs = elements_in_order(numbers.batch(2));
  REQUIRE_MESSAGE(pairs.ok(), pairs.status().text());
  CHECK(Tensor::same((*pairs)[0][0], Tensor::of<float>({2, 2}, {1.5f, -2, 0.25f, 8})));
  check_places(numbers.repeat(3), 2);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(tells(error(3, {.header = most, .footer = most}), "12 bytes, fewer than the header"));
  for (const auto& wrong : {data::fixed_records({"a"}, 0), data::fixed_records({"a"}, most),
                            data::fixed_records({"a"}, 1, {.header = -1}),
                            data::fixed_records({"a"}, 6, {.dtype = DType::f32}),
                            data::fixed_records({"a"}, 1, {.dtype = DType::bool_}),
                            data::fixed_records({"a"}, 32, {.dtype = DType::string}),
                            data::fixed_records({"a"}, 1, {.dtype = DType::invalid}),
                            data::fixed_records(std::vector<std::string>(), 1)})
    CHECK(wrong.signature().status().code() == Code::invalid_argument);
}

namespace {

class ReadCounted final : public DataFile {
 public:
  ReadCounted(DataFilePtr file, std::uint64_t& bytes) : file_(std::move(file)), bytes_(bytes) {}
  const std::string& name() const override { return file_->name(); }
  std::uint64_t size() const override { return file_->size(); }
  Status read_at(std::uint64_t offset, std::span<char> out) const override {
    bytes_ += out.size();
    return file_->read_at(offset, out);
  }

 private:
  DataFilePtr file_;
  std::uint64_t& bytes_;
};

}  // namespace

TEST_CASE("a stream that is read and skipped in parts of any size has the bytes of its file") {
  constexpr std::uint64_t kSeed = 31;
  Random random(kSeed);
  INFO("seed " << kSeed);
  std::string content(3'000'000, '\0');
  for (char& byte : content) byte = char(random());
  const DataDirectory files;
  const std::string path = files.write("bytes", content);
  for (int round = 0; round < 20; ++round) {
    ByteStream stream = ByteStream::open_as(open_local_file(path).value(), Wrapping::none);
    std::uint64_t at = 0;
    while (at < content.size()) {
      const std::uint64_t n = random.below(std::uint64_t{1} << random.below(20));
      const std::uint64_t there = std::min<std::uint64_t>(n, content.size() - at);
      if (random.below(3) == 0) {
        REQUIRE(stream.skip(n).value() == there);
      } else {
        std::string out = "kept", parts;
        const std::size_t ahead = random.below(3) * random.below(2000);
        REQUIRE(stream
                    .read(
                        n, out, [&](std::string_view part) { parts += part; }, ahead)
                    .value() == there);
        REQUIRE(out == "kept" + content.substr(at, there));
        REQUIRE(parts == content.substr(at, there));
      }
      at += there;
      REQUIRE(stream.offset() == at);
      if (random.below(8) == 0) stream = ByteStream(ByteStream(stream));
    }
    std::string rest;
    CHECK(stream.read(1, rest).value() == 0);
  }
}

TEST_CASE("a part of a file is read to any address") {
  constexpr std::uint64_t kSeed = 37;
  Random random(kSeed);
  INFO("seed " << kSeed);
  std::string content(300'000, '\0');
  for (char& byte : content) byte = char(random());
  const DataDirectory files;
  const DataFilePtr file = open_local_file(files.write("bytes", content)).value();
  std::vector<char> memory(content.size() + 8192);
  for (std::size_t behind = 0; behind < 4096; behind += behind < 80 ? 1 : 97) {
    const std::size_t offset = random.below(5000), bytes = random.below(200'000);
    const auto page = reinterpret_cast<std::uintptr_t>(memory.data());
    char* const to = memory.data() + (offset + behind - page) % 4096;
    CAPTURE(behind);
    REQUIRE(file->read_at(offset, {to, bytes}).ok());
    REQUIRE(std::string_view(to, bytes) == std::string_view(content).substr(offset, bytes));
    const Status beyond = file->read_at(content.size() - 20'000, {to, 20'001});
    REQUIRE(beyond.code() == Code::failed_precondition);
  }
}

TEST_CASE("of large records that are passed over little is read, and of others no more than once") {
  std::string content;
  for (int i = 0; i < 64; ++i) content += framed(std::string(100'000, char('a' + i % 26)));
  std::uint64_t bytes = 0;
  const auto open = [&] {
    bytes = 0;
    return RecordStream::open(std::make_shared<ReadCounted>(memory_file("records", content), bytes),
                              data::Packing::none, 1 << 20)
        .value();
  };
  std::string record;
  RecordStream all = open();
  while (all.next(record).value()) CHECK(record.size() == 100'000);
  CHECK(bytes == content.size());
  RecordStream some = open();
  for (int i = 0; i < 16; ++i) {  // one of four replicas
    REQUIRE(some.next(record).value());
    CHECK(record[0] == char('a' + 4 * i % 26));
    for (int n = 0; n < 3; ++n) REQUIRE(some.skip().value());
  }
  CHECK(bytes < content.size() / 4 + 100'000);
}
