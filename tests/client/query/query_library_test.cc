// libregatta_query as programs in C and C++ see it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "compiler/codegen/compiler_version.h"
#include "compiler/compile.h"
#include "server/query/best_file.h"
#include "server/query/snapshot_writer.h"
#include "tests/server/query/planted_log.h"
#include "tests/support/process.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using testing::PlantedQuestions;
using testing::ProcessResult;
using testing::RunProcess;

absl::StatusOr<std::string> Version(const Target& target) {
  return CompilerVersion(target);
}

class QueryLibrary : public ::testing::Test {
 protected:
  QueryLibrary() {
    auto log = OpenTuningLog(Path("log.db"));
    CHECK(log.ok()) << log.status();
    testing::PlantLog(**log, CompilerVersion(Target()));
    SnapshotOptions options;
    options.compiler_version = CompilerVersion(Target());
    options.make_target = MakeTargetWith(CompleteTarget, Version);
    const auto bytes = WriteSnapshot(**log, options);
    CHECK(bytes.ok()) << bytes.status();
    testing::WriteFile(Path("best.rgs"), *bytes);
    std::string lines;
    for (const v1::BestRequest& question : PlantedQuestions()) {
      absl::StrAppend(
          &lines, question.workload(), "|", question.device_class(), "|",
          question.target(), "|", question.policy().threads(), "|",
          question.policy().cache() == v1::CACHE_STATE_COLD ? 1 : 0, "\n");
    }
    testing::WriteFile(Path("questions"), lines);
  }
  std::string Path(const std::string& name) const {
    return absl::StrCat(dir_.path(), "/", name);
  }
  ProcessResult RunC(const std::string& file) {
    return RunProcess({QUERY_PROGRAM_C, Path(file), Path("questions")});
  }

  testing::TempDir dir_;
};

// What the C program prints of an answer.
std::string Printed(const absl::StatusOr<v1::BestAnswer>& answer) {
  if (!answer.ok()) return "error";
  const char* grades[] = {
      "",       "exact", "compatible", "neighbour_shape", "neighbour_device",
      "default"};
  int grade = 5;
  while (grade > 0 && answer->grade() != grades[grade]) --grade;
  return absl::StrCat(
      answer->grade(), "|", grade, "|", answer->differing_field(), "|",
      answer->schedule().text(), "|", answer->schedule().space(), "|",
      answer->schedule().space_version(), "|", answer->workload(), "|",
      answer->workload_key(), "|", answer->device_class(), "|",
      answer->target(), "|", answer->policy().threads(), "|",
      answer->policy().cache() == v1::CACHE_STATE_COLD ? 1 : 0, "|",
      absl::StrCat(answer->time_ns(), "|", answer->low_ns(), "|",
                   answer->high_ns(), "|", answer->samples(), "|",
                   answer->boards(), "|", answer->default_ns(), "|",
                   answer->compiler_version(), "|", answer->binary_hash(), "|",
                   answer->reason(), "|", answer->measured_unix_ms()));
}

TEST_F(QueryLibrary, GivesCProgramsTheAnswersOfTheCommandLine) {
  for (const char* name : {"best.rgs", "log.db"}) {
    auto file = BestFile::Open(
        Path(name), {.complete = CompleteTarget, .compiler_version = Version});
    ASSERT_TRUE(file.ok()) << file.status();
    const ProcessResult result = RunC(name);
    ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
    const std::vector<std::string> lines = absl::StrSplit(result.out, '\n');
    const auto questions = PlantedQuestions();
    ASSERT_EQ(lines.size(), questions.size() + 1);
    for (size_t i = 0; i < questions.size(); ++i) {
      const auto answer = (*file)->Answer(questions[i], 0);
      if (answer.ok()) {
        EXPECT_EQ(lines[i], Printed(answer)) << questions[i].ShortDebugString();
      } else {
        EXPECT_THAT(lines[i], HasSubstr("error ")) << answer.status();
      }
    }
  }
}

// More questions than one thread answers, in an order where recorded ones,
// others and wrong ones alternate.
TEST_F(QueryLibrary, AnswersALargeBatchInTheOrderOfItsQuestions) {
  std::string lines;
  std::vector<std::string> workloads;
  for (int i = 0; i < 1000; ++i) {
    workloads.push_back(
        i % 4 == 0   ? PlantedQuestions()[0].workload()
        : i % 4 == 1 ? absl::StrCat("matmul(m=", i, ",n=77,k=33)")
        : i % 4 == 2 ? absl::StrCat("softmax(rows=", i, ",cols=9)")
                     : absl::StrCat("matmul(m=", i, ")"));
    absl::StrAppend(&lines, workloads.back(), "|", testing::kClassA, "||1|0\n");
  }
  testing::WriteFile(Path("questions"), lines);
  const ProcessResult result = RunC("best.rgs");
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const std::vector<std::string> answers = absl::StrSplit(result.out, '\n');
  ASSERT_EQ(answers.size(), workloads.size() + 1);
  auto file = BestFile::Open(Path("best.rgs"), {.complete = CompleteTarget,
                                                .compiler_version = Version});
  ASSERT_TRUE(file.ok()) << file.status();
  for (size_t i = 0; i < workloads.size(); ++i) {
    v1::BestRequest question;
    question.set_workload(workloads[i]);
    question.set_device_class(testing::kClassA);
    const auto answer = (*file)->Answer(question, 0);
    EXPECT_EQ(answer.ok(), i % 4 != 3) << answer.status();
    if (answer.ok()) {
      EXPECT_EQ(answers[i], Printed(answer)) << workloads[i];
    } else {
      EXPECT_EQ(answers[i],
                absl::StrCat("error 1 ", answer.status().message()));
    }
  }
}

TEST_F(QueryLibrary, SaysWhatIsWrongWithAFile) {
  EXPECT_THAT(RunC("missing").out, HasSubstr("cannot open: 2"));
  testing::WriteFile(Path("cut.rgs"),
                     testing::ReadFile(Path("best.rgs")).substr(0, 1000));
  ProcessResult result = RunC("cut.rgs");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("cannot open: 4"));
  EXPECT_THAT(result.out, HasSubstr("cut.rgs: the snapshot is cut off"));
  testing::WriteFile(Path("text"), "hello, this is no log at all\n");
  result = RunC("text");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("text"));
  // Nobody writes into it: opening it would wait.
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  result = RunProcess({QUERY_PROGRAM_C, Path("pipe"), Path("questions")}, {},
                      absl::Seconds(20));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("not a regular file"));
}

TEST_F(QueryLibrary, RefusesALogThatAServerHoldsAndSaysWhere) {
  OpenOptions options;
  options.holder = "regatta-server at 127.0.0.1:7470";
  const auto held = OpenTuningLog(Path("log.db"), options);
  ASSERT_TRUE(held.ok()) << held.status();
  const ProcessResult result = RunC("log.db");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("cannot open: 3"));
  EXPECT_THAT(result.out, HasSubstr("127.0.0.1:7470"));
  std::filesystem::create_hard_link(Path("log.db"), Path("hard.db"));
  EXPECT_THAT(RunC("hard.db").out, HasSubstr("cannot open: 3"));
}

TEST_F(QueryLibrary, ServesCxxPrograms) {
  const v1::BestRequest question = PlantedQuestions()[0];
  const ProcessResult result =
      RunProcess({QUERY_PROGRAM_CXX, Path("best.rgs"), question.workload(),
                  testing::kClassA});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("exact "));
}

TEST_F(QueryLibrary, ExportsItsFunctionsAlone) {
  const ProcessResult result =
      RunProcess({"nm", "-D", "--defined-only", QUERY_LIBRARY});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  int functions = 0;
  for (const absl::string_view line : absl::StrSplit(result.out, '\n')) {
    if (line.empty()) continue;
    EXPECT_THAT(std::string(line), HasSubstr("REGATTA_QUERY_1"));
    functions += std::string(line).find("@@") != std::string::npos;
  }
  EXPECT_EQ(functions, 7);
}

TEST(CompilerVersion, IsKnownWithoutACodeGenerator) {
  EXPECT_EQ(CompilerVersionOfKind("cpu"), CompilerVersion(Target()));
  EXPECT_EQ(CompilerVersionOfKind("abacus"), "");
}

}  // namespace
}  // namespace regatta
