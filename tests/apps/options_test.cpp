// What is said of options that mean nothing, and of words that nobody understands.
#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "apps/training.hpp"
#include "tests/apps/command.hpp"

namespace {

void refused(const std::string& arguments, const std::string& what) {
  INFO("troupe ", arguments);
  Ended ended = troupe_command(arguments);
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(contains(ended.err, what));
  CHECK(ended.out.empty());
}

}  // namespace

TEST_CASE("numbers of epochs and rates that train nothing are usage errors") {
  refused("train mnist-mlp --epochs 0", "--epochs: Value 0 is not above 0 and up to");
  refused("train mnist-mlp --epochs -1", "--epochs");
  refused("train mnist-mlp --epochs nan", "--epochs");
  refused("train mnist-mlp --learning-rate 0", "--learning-rate");
  refused("train mnist-mlp --learning-rate nan", "--learning-rate");
  refused("train mnist-mlp --epochs 1 --steps 5", "excludes");
}

TEST_CASE("a training of no step, or with a batch that is never full, is refused") {
  const std::string train = "train mnist-softmax --examples 100 --quiet ";
  Ended none = troupe_command(train + "--batch 16 --epochs 0.001");
  CHECK(none.code == 1);
  CHECK(contains(none.err, "0.001 epochs of 100 examples are less than one step of 16 examples"));
  CHECK(none.out.empty());
  Ended large = troupe_command(train + "--batch 101 --steps 3");
  CHECK(large.code == 1);
  CHECK(contains(large.err, "a batch of 101 is more than the 100 examples that there are"));
  Ended replicas = troupe_command(train + "--batch 60 --replicas 2");
  CHECK(replicas.code == 1);
  CHECK(contains(replicas.err, "less than one step of 120 examples"));
}

TEST_CASE("what train() is given is checked as the command's options are") {
  using namespace troupe;
  const auto with = [](auto change) {
    TrainOptions options;
    change(options);
    return check(options);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(with([](TrainOptions&) {}).ok());
  for (double wrong : {nan, -1.0, 1e7, -nan}) {
    CHECK(!with([&](TrainOptions& o) { o.learning_rate = wrong; }).ok());
    CHECK(!with([&](TrainOptions& o) { o.epochs = wrong; }).ok());
  }
  CHECK(!with([&](TrainOptions& o) { o.checkpoint_seconds = nan; }).ok());
  for (std::int64_t wrong : {std::int64_t(0), std::int64_t(-1), std::int64_t(1) << 40}) {
    CHECK(!with([&](TrainOptions& o) { o.batch = wrong; }).ok());
    CHECK(!with([&](TrainOptions& o) { o.examples = wrong; }).ok());
    CHECK(!with([&](TrainOptions& o) { o.test_examples = wrong; }).ok());
    CHECK(!with([&](TrainOptions& o) { o.validate_steps = wrong; }).ok());
    CHECK(!with([&](TrainOptions& o) { o.trace_steps = wrong; }).ok());
  }
  for (int wrong : {-1, 0, 1001}) CHECK(!with([&](TrainOptions& o) { o.keep = wrong; }).ok());
  for (std::int64_t wrong : {-1, -5}) {
    CHECK(!with([&](TrainOptions& o) { o.steps = wrong; }).ok());
    CHECK(!with([&](TrainOptions& o) { o.checkpoint_steps = wrong; }).ok());
    CHECK(!with([&](TrainOptions& o) { o.patience = int(wrong); }).ok());
    CHECK(!with([&](TrainOptions& o) { o.sample = wrong; }).ok());
    CHECK(!with([&](TrainOptions& o) { o.cluster.threads = int(wrong); }).ok());
  }
  CHECK(!with([](TrainOptions& o) { o.steps = 5, o.epochs = 1; }).ok());
  Status said = with([](TrainOptions& o) { o.batch = 0; });
  CHECK(said.message() == "the batch is a number from 1 to 1000000, not 0");
}

TEST_CASE("an option that the network has no use for is refused by name") {
  for (const char* option : {"--patience 3", "--over-time loop", "--validate-every 5"}) {
    const std::string name = std::string(option).substr(0, std::string(option).find(' '));
    refused(std::string("train mnist-conv ") + option,
            name + " applies to char-lstm only, not to mnist-conv");
  }
  refused("train char-lstm --examples 100", "--examples applies to networks for pictures only");
  refused("train mnist-conv --data /tmp --examples 100",
          "--examples applies to generated pictures only");
  refused("train mnist-conv --keep 2", "--keep needs --checkpoint-dir");
  refused("train mnist-conv --secret-file " + troupe_program() + " --steps 1", "secret");
}

TEST_CASE("a type of device that there is not is answered in the words that were used") {
  refused("train mnist-mlp --device tpu", "there is no device of type 'tpu'; known are: CPU, CUDA");
  CHECK(!contains(troupe_command("train mnist-mlp --device tpu").err, "FAKE"));
}

TEST_CASE("a beginning of a name, an option or a command is answered with what may be meant") {
  refused("train mnist", "did you mean mnist-softmax, mnist-mlp, mnist-conv or mnist-moe?");
  refused("train cifar", "did you mean cifar-softmax or cifar-resnet20?");
  refused("train mnist-mlp --stpes 5", "did you mean '--steps'?");
  refused("train mnist-mlp --checkpoint-dri=x", "did you mean '--checkpoint-dir'?");
  refused("graph mnist-mlp --stages place", "did you mean '--stage'?");
  refused("ckpt lss x", "did you mean 'troupe ckpt ls'?");
  refused("trian mnist-mlp", "did you mean 'troupe train'?");
  refused("", "train");
}

TEST_CASE("where a command has to be, the commands are named") {
  refused("version", "there is no command 'troupe version'; known are bench, chaos,");
  refused("ckpt shwo", "there is no command 'troupe ckpt shwo'; known are ls, ");
  refused("ckpt", "'troupe ckpt' needs one of ls, ");
  refused("ckpt ls", "directory is required");
  refused("help ckpt shwo", "there is no command 'troupe ckpt shwo'; known are ls, ");
}

TEST_CASE("help is a command") {
  Ended help = troupe_command("help");
  CHECK(help.code == 0);
  CHECK(help.out == troupe_command("--help").out);
  CHECK(help.err.empty());
  CHECK(troupe_command("help train").out == troupe_command("train --help").out);
  CHECK(troupe_command("help ckpt ls").out == troupe_command("ckpt ls --help").out);
  refused("help trian", "did you mean 'troupe train'?");
}

TEST_CASE("the peers of a benchmark are a list") {
  refused("bench --peer torch,jax", "jax");
  for (const char* peers : {"--peer torch,tensorflow", "--peer torch --peer tensorflow"})
    refused(std::string("bench step ") + peers,
            "--peer torch is of the groups embedding, gpu, input, kernels and train");
  refused("bench channel --peer tensorflow", "--peer tensorflow is of the groups");
}

TEST_CASE("an example prints its options, and refuses one that is mistyped") {
  const std::string example = build_dir() + "/bin/examples/mnist ";
  Ended help = shell_command(example + "--help");
  CHECK(help.code == 0);
  for (const char* option : {"--threads", "--replicas", "--cluster", "--step-memory"})
    CHECK(contains(help.out, option));
  CHECK(!contains(help.out, "loss"));
  Ended mistyped = shell_command(example + "--thread 1");
  CHECK(mistyped.code != 0);
  CHECK(contains(mistyped.err, "did you mean '--threads'?"));
  CHECK(!contains(mistyped.out, "loss"));
}

TEST_CASE("a worker's error is a JSON document when JSON is asked for") {
  Ended ended = troupe_command("worker --master nowhere --output json");
  CHECK(ended.json()["code"] == "invalid_argument");
}

TEST_CASE("the demo's result is a JSON document when JSON is asked for [slow]") {
  Ended ended = troupe_command("demo --output json");
  auto json = ended.json();
  REQUIRE(json.is_object());
  CHECK(json["good"] == true);
  CHECK(json["mnist-conv"]["test_accuracy"].get<double>() > 0.97);
  CHECK(ended.err.empty());
}
