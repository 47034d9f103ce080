// The real program without a server: exit codes, messages, empty standard
// output.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "client/cli/documents.h"
#include "storage/tuning_log.h"
#include "tests/support/process.h"

namespace regatta::cli {
namespace {

using ::regatta::testing::ProcessResult;
using ::regatta::testing::ReadFile;
using ::regatta::testing::RunProcess;
using ::regatta::testing::TempDir;
using ::regatta::testing::WriteFile;

const char kRegatta[] = REGATTA_PROGRAM_DIR "/regatta";
const char kGood[] = "matmul(m=4,n=4,k=4)";
// A port on which nothing listens.
const char kNobody[] = "REGATTA_SERVER=127.0.0.1:1";

ProcessResult Regatta(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kRegatta);
  return RunProcess(arguments, {kNobody}, absl::Seconds(30));
}

ProcessResult Shell(const std::string& command) {
  return RunProcess(
      {"/bin/sh", "-c", absl::StrCat("'", kRegatta, "' ", command)}, {kNobody},
      absl::Seconds(30));
}

struct Case {
  std::vector<std::string> arguments;
  int exit_code;
  std::string says;
};

TEST(CliErrors, EachHasItsCodeAndAMessageAndPrintsNothingElse) {
  const std::vector<Case> cases = {
      {{}, 2, "subcommand"},
      {{"no-such-command"}, 2, "no-such-command"},
      {{"device", "foo", "b1"}, 2, "no subcommand 'foo'; there are: approve"},
      {{"device", "--foo", "drain", "b1", "--reason", "x"}, 2, "'--foo'"},
      {{"device", "drain", "b1", "--reason", " "}, 2, "says nothing"},
      {{"log", "foo"}, 2, "no subcommand 'foo'; there are: "},
      {{"log", "backup", "-", "--log", "/dev/null"}, 2, "name one"},
      {{"devices", "--no-such-flag"}, 2, "--no-such-flag"},
      {{"tune"}, 2, "workload"},
      {{"tune", ""}, 2, "matmul("},
      {{"tune", "("}, 2, "character 1"},
      {{"tune", "matmull(m=4,n=4,k=4)"}, 2, "matmul"},
      {{"tune", "matmul(m=0,n=4,k=4)"}, 2, "m is 0"},
      {{"tune", "matmul(m=4.5,n=4,k=4)"}, 2, "4.5"},
      {{"tune", "matmul(m=4,m=5,n=4,k=4)"}, 2, "twice"},
      {{"tune", "matmul(m=99999999999999999999,n=4,k=4)"}, 2, "m is"},
      {{"tune", "C[i,j] = sum(k) A[i,k] * B[q,j] where i=4, j=4, k=4"}, 2, "q"},
      {{"tune", "matmul(m=4,n=4,k=4\xff)"}, 2, "UTF-8"},
      {{"tune", std::string(100'000, 'x')}, 2, "workload"},
      {{"tune", kGood, "--trials", "0"}, 2, "--trials"},
      {{"tune", kGood, "--trials", "-1"}, 2, "--trials"},
      {{"tune", kGood, "--trials", "ten"}, 2, "--trials"},
      {{"tune", kGood, "--trials", "1e3"}, 2, "--trials"},
      {{"tune", kGood, "--trials", "0x10"}, 2, "--trials"},
      {{"tune", kGood, "--trials", ""}, 2, "--trials"},
      {{"tune", kGood, "--trials"}, 2, "--trials"},
      {{"tune", kGood, "--trials", "5", "--minutes", "1"}, 2, "--minutes"},
      {{"tune", kGood, "--minutes", "nan"}, 2, "--minutes"},
      {{"tune", kGood, "--seed", "-1"}, 2, "--seed"},
      {{"tune", kGood, "--strategy", "magic"}, 2, "evolutionary"},
      {{"tune", kGood, "--threads", "0"}, 2, "--threads"},
      {{"tune", kGood, "--threads", "99999999999"}, 2, "--threads"},
      {{"tune", kGood, "--cache", "tepid"}, 2, "warm"},
      {{"tune", kGood, "--priority", "1000"}, 2, "--priority"},
      {{"tune", kGood, "--name", "\xff"}, 2, "--name"},
      {{"tune", "--file", "/nonexistent"}, 1, "/nonexistent: cannot be read"},
      {{"tune", "--file", ""}, 1, "cannot be read"},
      {{"tune", "--file", "/dev/null"}, 2, "/dev/null: line 1, column 1"},
      {{"tune", "--file", "/dev/null", "--trials", "5"}, 2, "--trials"},
      {{"tune", "--file", "/dev/null", "--threads", "2"}, 2, "--threads"},
      {{"tune", kGood, "--file", "/dev/null"}, 2, "--file"},
      {{"tune", kGood, "--until-gain", "0"}, 2, "--until-gain"},
      {{"tune", kGood, "--weight", "0x10"}, 2, "--weight"},
      {{"tune", kGood, "--device-class", "a", "--device-class", "a"},
       2,
       "--device-class a is given twice"},
      {{"tune", "matmul(\x1b[2J"}, 2, "\\x1b[2J"},
      {{"tune", kGood, "--minutes", "0x1p3"}, 2, "--minutes"},
      {{"tune", kGood, "--server", ""}, 2, "--server"},
      {{"tune", "rms_norm(rows=8,cols=8,eps=0x10)"}, 2, "eps is '0x10'"},
      {{"tune",
        "depthwise_conv2d(n=1,h=9,w=9,c=16,kh=3,kw=3,multiplier=3,"
        "layout=NCHWc,block=8)"},
       2,
       "multiplier=3 does not go with layout=NCHWc"},
      {{"best", kGood, "--log", ""}, 2, "--log"},
      {{"best", kGood, "--snapshot", ""}, 2, "--snapshot"},
      {{"compile", kGood, "--log", "", "-o", "k.so"}, 2, "--log"},
      {{"log", "check", "--log", ""}, 2, "--log"},
      {{"log", "check", "--server", ""}, 2, "--server"},
      {{"compile", "--file", "j.json", "-o", "k.so", "--threads", "2"},
       2,
       "--threads does not go with --file"},
      {{"compile", "--file", "j.json", "-o", "k.so", "--cache", "warm"},
       2,
       "--cache does not go with --file"},
      {{"tune", kGood, "--until-gain", "nan"}, 2, "--until-gain"},
      {{"tune", kGood, "--weight", "-1"}, 2, "--weight"},
      {{"resume"}, 2, "id"},
      {{"resume", "x"}, 2, "x"},
      {{"jobs", "x"}, 2, "'x'"},
      {{"jobs", "--watch"}, 2, "jobs ID"},
      {{"cancel"}, 2, "id"},
      {{"cancel", "0"}, 2, "'0'"},
      {{"best"}, 2, "workload"},
      {{"best", kGood, "--require", "compatible"}, 2, "exact"},
      {{"compile", kGood}, 2, "--output"},
      {{"compile", kGood, "-o", "/tmp/regatta-x", "--header", "/tmp/x.h"},
       2,
       "/tmp/regatta-x.h, beside the launcher"},
      {{"run", kGood, "--device-class", "cuda-nvidia-h200-132sm"},
       2,
       "--device-class cuda-nvidia-h200-132sm --trials 1"},
      {{"compile", kGood, "-o", "/tmp/regatta-x.txt"}, 2, ".so"},
      {{"compile", kGood, "-o", "/tmp/x.so", "--header", "/tmp/int.h"},
       2,
       "int"},
      {{"compile", kGood, "-o", "/tmp/x.so", "--header", "/tmp/x.so"}, 2, "-o"},
      {{"compile", kGood, "-o", "/tmp/x.so", "--target", "cpu",
        "--device-class", "c"},
       2,
       "--target"},
      {{"compile", kGood, "-o", "/tmp/x.so", "--target",
        "cpu,triple=x86_64-linux-gnu,mcpu=znver99"},
       2,
       "znver99"},
      {{"compile", kGood, "-o", "/tmp/x.so", "--log", "/nonexistent/t.db"},
       1,
       "/nonexistent"},
      {{"run", kGood, "--schedule", "nonsense{"}, 2, "nonsense{"},
      {{"run", kGood, "--schedule", ""}, 2, "--schedule"},
      {{"run", kGood, "--device-class", ""}, 2, "--device-class"},
      {{"compile", kGood, "-o", "k.so", "--device-class", ""},
       2,
       "--device-class"},
      {{"compile", kGood, "-o", "k.so", "--target", ""}, 2, "--target"},
      {{"compile", kGood, "-o", "k", "--target", "metal"},
       2,
       "kinds are cpu, opencl, cuda"},
      {{"compile", kGood, "-o", "k", "--target", "opencl,max_group=0"},
       2,
       "max_group"},
      {{"compile", kGood, "-o", "k", "--target", "opencl,features=+nonsense"},
       2,
       "known are cl_khr_fp16"},
      {{"run", kGood, "--threads", "1024"}, 1, "cores"},
      {{"devices", "--server", "nowhere"}, 2, "nowhere"},
      {{"up", "--listen", "nowhere"}, 2, "nowhere"},
      {{"up", "--dir", "/proc/regatta", "--listen", "127.0.0.1:0"},
       1,
       "/proc/regatta"},
      {{"up", "--listen", "127.0.0.1:65535", "--dir", "/tmp"}, 2, "65535"},
      {{"log", "import", "/nonexistent"}, 1, "/nonexistent"},
      {{"log", "import"}, 2, "file is required"},
      {{"log"}, 2, "export, import"},
      {{"log", "check", "--server", "127.0.0.1:1"}, 1, "--log FILE"},
      {{"log", "check", "--log", "/nonexistent/x"}, 1, "/nonexistent"},
      {{"log", "check", "--log", "x", "--server", "h:1"}, 2, "--log"},
      {{"log", "export", "x", "--format", "xml"}, 2, "--format"},
      {{"log", "export", "x", "--workload", "w"}, 2, "--format t4"},
  };
  for (const Case& c : cases) {
    const std::string line = absl::StrJoin(c.arguments, " ").substr(0, 200);
    const ProcessResult result = Regatta(c.arguments);
    EXPECT_EQ(result.exit_code, c.exit_code) << line << "\n" << result.err;
    EXPECT_GT(result.err.size(), 20u) << line;
    EXPECT_LT(result.err.size(), 10'000u) << line;
    EXPECT_NE(result.err.find(c.says), std::string::npos)
        << line << " says: " << result.err;
    EXPECT_EQ(result.out, "") << line;
  }
}

TEST(CliErrors, AServerThatIsNotThereIsNoticedAtOnce) {
  const std::vector<std::vector<std::string>> commands = {
      {"devices"},        {"tune", kGood},
      {"jobs"},           {"jobs", "1", "--watch"},
      {"cancel", "1"},    {"best", kGood, "--device-class", "c"},
      {"records", kGood}, {"compile", kGood, "-o", "/tmp/regatta-none.so"},
  };
  for (std::vector<std::string> arguments : commands) {
    for (const bool json : {false, true}) {
      if (json) arguments.push_back("--json");
      const SteadyTime start = RealClock().Steady();
      const ProcessResult result = Regatta(arguments);
      EXPECT_LT(RealClock().Steady() - start, absl::Seconds(3));
      EXPECT_EQ(result.exit_code, 1) << arguments[0];
      EXPECT_EQ(result.out, "") << arguments[0];
      EXPECT_NE(result.err.find("127.0.0.1:1"), std::string::npos)
          << arguments[0] << " says: " << result.err;
      EXPECT_NE(result.err.find("REGATTA_SERVER"), std::string::npos)
          << result.err;
    }
  }
  EXPECT_FALSE(std::filesystem::exists("/tmp/regatta-none.so"));
}

TEST(CliErrors, AClassFlagTakesOneNameSoTheWorkloadMayFollow) {
  const ProcessResult result = Regatta({"tune", "--device-class", "c", kGood});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find("127.0.0.1:1"), std::string::npos) << result.err;
}

TEST(CliErrors, ALabelFlagTakesOneLabelSoTheBoardMayFollow) {
  const ProcessResult result =
      Regatta({"device", "label", "--set", "a=b", "--set", "c=d", "board"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find("127.0.0.1:1"), std::string::npos) << result.err;
}

TEST(CliErrors, WhatCannotBePrintedIsNoSuccess) {
  const ProcessResult full = Shell("ops --json >/dev/full");
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_NE(full.err.find("standard output"), std::string::npos) << full.err;
  EXPECT_EQ(Shell("ops --json >&-").exit_code, 1);
  EXPECT_EQ(Shell("ops --json <&- 2>&-").exit_code, 0);
}

TEST(CliHelp, IsASuccessOnStandardOutput) {
  for (const std::string command :
       {"", "up", "devices", "tune", "jobs", "cancel", "resume", "best",
        "records", "compile", "run", "ops"}) {
    const ProcessResult result =
        command.empty() ? Regatta({"--help"}) : Regatta({command, "--help"});
    EXPECT_EQ(result.exit_code, 0) << command;
    EXPECT_NE(result.out.find("--help"), std::string::npos) << result.out;
    EXPECT_EQ(result.err, "");
  }
  EXPECT_EQ(Regatta({"--version"}).out.substr(0, 8), "regatta ");
}

TEST(Ops, AreListedWithTheirParameters) {
  const Json ops = Json::parse(Regatta({"ops", "--json"}).out)["ops"];
  ASSERT_TRUE(ops.is_array());
  std::vector<std::string> names;
  for (const Json& op : ops) names.push_back(op["name"]);
  EXPECT_EQ(std::count(names.begin(), names.end(), "matmul"), 1);
  EXPECT_TRUE(ops[0]["parameters"][0]["default"].is_null());
  EXPECT_EQ(ops[0]["parameters"][0]["kind"], "integer");
  const std::string expression = ops[0]["expression"];
  EXPECT_NE(expression.find(" where "), std::string::npos) << expression;
}

// A log without any record.
class EmptyLog : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(OpenTuningLog(log_).ok()); }

  ProcessResult Compile(std::vector<std::string> more,
                        const std::string& header = "k.h") {
    std::vector<std::string> arguments = {"compile",  kGood,      "--log",
                                          log_,       "-o",       Out("k.so"),
                                          "--header", Out(header)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Regatta(arguments);
  }
  std::string Out(const std::string& name) { return dir_.path() + "/" + name; }

  TempDir dir_;
  std::string log_ = dir_.path() + "/tuning.db";
};

TEST_F(EmptyLog, DoesNotKnowThisMachine) {
  const ProcessResult result = Compile({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--device-class"), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_FALSE(std::filesystem::exists(Out("k.so")));
  EXPECT_EQ(Compile({"--device-class", "no-such-board"}).exit_code, 1);
}

TEST_F(EmptyLog, GivesTheDefaultForATarget) {
  const ProcessResult result = Compile(
      {"--target", "cpu,triple=x86_64-linux-gnu,mcpu=x86-64-v3", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["grade"], "default");
  EXPECT_EQ(document["function"], "k");
  EXPECT_TRUE(document["device_class"].is_null());
  EXPECT_EQ(document["threads"], 1);
  EXPECT_EQ(document["cache"], "warm");
  EXPECT_TRUE(std::filesystem::exists(Out("k.so")));
  EXPECT_TRUE(std::filesystem::exists(Out("k.h")));
}

TEST_F(EmptyLog, AHeaderThatCannotBeWrittenLeavesNoLibraryEither) {
  const ProcessResult result = Compile(
      {"--target", "cpu,triple=x86_64-linux-gnu,mcpu=x86-64-v3"}, "none/k.h");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("none/k.h"), std::string::npos) << result.err;
  EXPECT_FALSE(std::filesystem::exists(Out("k.so")));
}

// Also one that nobody asked for: the log is a server's, perhaps.
TEST_F(EmptyLog, NoCommandWritesOverATuningLog) {
  const std::string other = Out("other.db");
  ASSERT_TRUE(OpenTuningLog(other).ok());
  const auto held = OpenTuningLog(other);
  ASSERT_TRUE(held.ok());
  const std::string before = ReadFile(other);
  const std::string target = "cpu,triple=x86_64-linux-gnu,mcpu=x86-64-v3";
  for (const std::string& file : {log_, other, other + "-wal"}) {
    const std::vector<std::vector<std::string>> commands = {
        {"log", "export", file, "--log", log_},
        {"log", "export", file, "--format", "t4", "--log", log_},
        {"log", "snapshot", "-o", file, "--log", log_},
        {"compile", kGood, "--log", log_, "-o", Out("k.so"), "--header", file,
         "--target", target}};
    for (const std::vector<std::string>& arguments : commands) {
      const ProcessResult result = Regatta(arguments);
      EXPECT_EQ(result.exit_code, 1) << arguments[1] << " " << result.err;
      EXPECT_TRUE(result.err.find("itself") != std::string::npos ||
                  result.err.find("a tuning log") != std::string::npos)
          << result.err;
      EXPECT_EQ(result.out, "");
    }
  }
  EXPECT_TRUE(ReadFile(other) == before);
  EXPECT_TRUE(OpenTuningLog(log_).ok());
  EXPECT_FALSE(std::filesystem::exists(Out("k.so")));
}

TEST_F(EmptyLog, ABackupIsNotPutOverALogThatIsOpen) {
  const std::string other = Out("other.db");
  const auto held = OpenTuningLog(other);
  ASSERT_TRUE(held.ok());
  for (const std::string& file : {log_, other, other + "-wal"}) {
    const ProcessResult result =
        Regatta({"log", "backup", "--force", file, "--log", log_});
    EXPECT_EQ(result.exit_code, 1) << file << " " << result.err;
  }
}

// A pipe that nobody writes into would be waited for.
TEST_F(EmptyLog, APipeIsNoFileOfAnswers) {
  ASSERT_EQ(mkfifo(Out("pipe").c_str(), 0600), 0);
  for (const char* flag : {"--snapshot", "--log"}) {
    const ProcessResult result =
        Regatta({"best", kGood, flag, Out("pipe"), "--device-class", "c"});
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_NE(result.err.find("regular file"), std::string::npos) << result.err;
  }
}

TEST_F(EmptyLog, ADocumentNestedWithoutEndIsRefusedWithItsPlace) {
  WriteFile(Out("deep.json"), "{\n \"tasks\": " + std::string(300'000, '[') +
                                  std::string(300'000, ']') + "}");
  const std::vector<std::vector<std::string>> commands = {
      {"tune", "--file", Out("deep.json")},
      {"compile", "--file", Out("deep.json"), "-o", Out("k.so")}};
  for (const std::vector<std::string>& arguments : commands) {
    const ProcessResult result = Regatta(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find("line 2, column 42: lists and objects"),
              std::string::npos)
        << result.err;
  }
}

TEST_F(EmptyLog, AClassThatATaskNamesIsNoGuessAtThisMachines) {
  WriteFile(Out("jobs.json"), R"json({"tasks": [
      {"workload": "matmul(m=4,n=4,k=4)", "device_classes": ["nope"]}]})json");
  const ProcessResult result = Regatta({"compile", "--file", Out("jobs.json"),
                                        "--log", log_, "-o", Out("k.so")});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find("no device class 'nope'"), std::string::npos)
      << result.err;
  EXPECT_EQ(result.err.find("this machine"), std::string::npos) << result.err;
}

TEST_F(EmptyLog, ResultsOfAClassThatIsNotThereAreNoFile) {
  const ProcessResult result =
      Regatta({"log", "export", Out("r.json"), "--format", "t4",
               "--device-class", "nope", "--log", log_});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("no device class 'nope'"), std::string::npos)
      << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_FALSE(std::filesystem::exists(Out("r.json")));
}

TEST_F(EmptyLog, ARefusedImportSaysTheErrorAlone) {
  WriteFile(Out("in.jsonl"), "{\"v\":1,\"log\":{\"log_id\":\"abc\"}}\n");
  const ProcessResult result =
      Regatta({"log", "import", Out("in.jsonl"), "--log", log_, "--name",
               std::string(101, 'x')});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("the name of an import"), std::string::npos);
  EXPECT_EQ(result.err.find("note"), std::string::npos) << result.err;
}

TEST_F(EmptyLog, AnImportThatBringsNothingMakesNoLog) {
  const std::string fresh = Out("fresh.db");
  // No line, a line that is none, a head alone, and a verdict on a record that
  // is nowhere.
  for (const std::string lines :
       {"", "garbage\n", "{\"v\":1,\"log\":{\"log_id\":\"abc\"}}\n",
        "{\"v\":1,\"publication\":{\"trial_id\":\"abc:1/0/1\","
        "\"workload_key\":\"k\",\"device_class\":\"c\",\"policy\":"
        "{\"threads\":1,\"cache\":\"warm\"},\"time_ns\":5}}\n"}) {
    WriteFile(Out("in.jsonl"), lines);
    const ProcessResult result =
        Regatta({"log", "import", Out("in.jsonl"), "--log", fresh});
    EXPECT_FALSE(std::filesystem::exists(fresh)) << lines << result.err;
    EXPECT_FALSE(std::filesystem::exists(fresh + ".lock")) << lines;
  }
}

}  // namespace
}  // namespace regatta::cli
