// The small parts of measuring, each by itself.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "base/memory_file.h"
#include "compiler/ops/op.h"
#include "device_agent/build/workload_facts.h"
#include "device_agent/measure/core_locks.h"
#include "device_agent/measure/device_executor.h"
#include "device_agent/measure/duplicate_index.h"
#include "device_agent/measure/reference_store.h"
#include "device_agent/measure/trial_timer.h"
#include "device_agent/measure/worker_ending.h"
#include "device_agent/run/exit_codes.h"
#include "device_agent/spawner/cpu_list.h"
#include "device_agent/spawner/process_tree.h"
#include "device_agent/spawner/run_delay.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

// ---- CPU lists ----

TEST(CpuListTest, ReadsAndWritesWhatTheKernelWrites) {
  EXPECT_EQ(*ParseCpuList("0-2,5\n"), (std::vector<int>{0, 1, 2, 5}));
  EXPECT_EQ(*ParseCpuList("3,1,1"), (std::vector<int>{1, 3}));
  EXPECT_TRUE(ParseCpuList("")->empty());
  EXPECT_EQ(FormatCpuList({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(FormatCpuList({}), "");
}

TEST(CpuListTest, NamesThePartThatIsWrong) {
  for (const char* text : {"a", "1-", "-1", "3-1", "1,,2", "1024", "0-99999",
                           "1-2-3", "99999999999"}) {
    EXPECT_EQ(ParseCpuList(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_NE(ParseCpuList("0,x").status().message().find("\"x\""),
            absl::string_view::npos);
}

// ---- cores ----

TEST(CorePlanTest, OneThreadAndOneBuildShareTwoCoresWithoutMeeting) {
  const CorePlan plan({0, 1});
  EXPECT_EQ(plan.builders(), 1);
  EXPECT_EQ(plan.BuildCpu(0), 0);
  EXPECT_EQ(plan.TimingCpus(1), (std::vector<int>{1}));
  // A run on all cores meets the build's core, so they alternate.
  EXPECT_EQ(plan.TimingCpus(2), (std::vector<int>{0, 1}));
}

TEST(CorePlanTest, OneCoreDoesBothAndManyBuildOnFour) {
  EXPECT_EQ(CorePlan({3}).builders(), 1);
  EXPECT_EQ(CorePlan({3}).TimingCpus(1), (std::vector<int>{3}));
  EXPECT_EQ(CorePlan({0, 1, 2, 3, 4, 5, 6, 7}).builders(), 4);
}

TEST(ThreadsTest, AsManyAsThereAreCoresUnlessNoWorkerStartsWithSoMany) {
  EXPECT_EQ(WhyTooManyThreads(2, 2, "board"), "");
  EXPECT_EQ(WhyTooManyThreads(3, 2, "board"),
            "threads: 3 of 2 cores of device board");
  EXPECT_EQ(WhyTooManyThreads(249, 256, "board"), "");
  EXPECT_EQ(WhyTooManyThreads(250, 256, "board"),
            "threads: 250; one run has at most 249");
}

// ---- rounds ----

TEST(TrialTimerTest, SixRoundsAreTakenHoweverSlow) {
  EXPECT_FALSE(TrialTimer::EnoughRounds(5, absl::Hours(1)));
  EXPECT_TRUE(TrialTimer::EnoughRounds(6, absl::Seconds(15)));
  EXPECT_FALSE(TrialTimer::EnoughRounds(9, absl::Seconds(14)));
  EXPECT_TRUE(TrialTimer::EnoughRounds(10, absl::Seconds(3)));
  EXPECT_FALSE(TrialTimer::EnoughRounds(19, absl::Seconds(1)));
  EXPECT_TRUE(TrialTimer::EnoughRounds(20, absl::ZeroDuration()));
}

// ---- process trees ----

TEST(ProcessTreeTest, FindsTheLivingBelowAProcess) {
  const ProcessTree tree({{1, 0, 'S', 1, 10},
                          {2, 1, 'S', 1, 20},
                          {3, 2, 'Z', 1, 0},
                          {4, 3, 'R', 2, 30},
                          {5, 1, 'S', 1, 40}});
  std::vector<pid_t> below;
  for (const ProcessInfo& process : tree.Descendants(2)) {
    below.push_back(process.pid);
  }
  EXPECT_EQ(below, (std::vector<pid_t>{4}));
  EXPECT_EQ(tree.Find(3), nullptr);
  EXPECT_EQ(tree.Find(4)->threads, 2);
}

// ---- endings ----

v1::Exited Exited(v1::ExitReason reason, int code, const std::string& errors) {
  v1::Exited exited;
  exited.set_reason(reason);
  exited.set_code(code);
  exited.set_stderr_tail(errors);
  return exited;
}
constexpr char kOwnWords[] =
    "a\n2026-11-30T17:00:00.000Z error regatta-run-worker: no such thing\n";
Ending Judge(const v1::Exited& exited) {
  return JudgeRunWorker(exited, "in the first call", 2500, 64 << 20);
}

TEST(WorkerEndingTest, ACrashIsToldInTheWorkersOwnWords) {
  const Ending ending =
      Judge(Exited(v1::EXIT_REASON_SIGNALLED, SIGSEGV,
                   "noise\nSIGSEGV at address 0x0, in call 2\nmore noise\n"));
  EXPECT_EQ(ending.outcome, v1::OUTCOME_CRASHED);
  EXPECT_EQ(ending.detail, "SIGSEGV at address 0x0, in call 2");
  EXPECT_EQ(Judge(Exited(v1::EXIT_REASON_SIGNALLED, SIGBUS, "")).detail,
            "SIGBUS in the first call");
}

TEST(WorkerEndingTest, ADetailEndsWithACharacter) {
  // The 400th byte is the first of two.
  const std::string report = "SIGSEGV" + std::string(392, 'a');
  EXPECT_EQ(
      Judge(Exited(v1::EXIT_REASON_SIGNALLED, SIGSEGV, report + "\xc3\xa9zz\n"))
          .detail,
      report);
}

TEST(WorkerEndingTest, AKillFromOutsideIsTheBoardsFault) {
  EXPECT_EQ(Judge(Exited(v1::EXIT_REASON_SIGNALLED, SIGKILL, "")).outcome,
            v1::OUTCOME_DEVICE_FAULT);
}

TEST(WorkerEndingTest, TheWorkersOwnTroubleIsTheBoardsFault) {
  const Ending ending =
      Judge(Exited(v1::EXIT_REASON_EXITED, kRunWorkerFault, kOwnWords));
  EXPECT_EQ(ending.outcome, v1::OUTCOME_DEVICE_FAULT);
  EXPECT_EQ(ending.detail, "run worker: no such thing");
}

TEST(WorkerEndingTest, ACandidateThatEndsAsAFaultWouldIsStillACandidate) {
  const Ending ending = Judge(
      Exited(v1::EXIT_REASON_EXITED, kRunWorkerFault, "a\nno such thing\n"));
  EXPECT_EQ(ending.outcome, v1::OUTCOME_CRASHED);
  EXPECT_EQ(ending.detail,
            "ended the process with exit code 113 in the first call");
}

TEST(WorkerEndingTest, WhatACandidateBrokeInItsWorkerIsItsOwnFault) {
  const Ending ending =
      Judge(Exited(v1::EXIT_REASON_EXITED, kRunWorkerBroken, kOwnWords));
  EXPECT_EQ(ending.outcome, v1::OUTCOME_CRASHED);
  EXPECT_EQ(ending.detail, "broke its worker in the first call: no such thing");
  EXPECT_EQ(Judge(Exited(v1::EXIT_REASON_EXITED, kRunWorkerBroken, "")).detail,
            "broke its worker in the first call: it could not even say how");
}

TEST(WorkerEndingTest, AnOverloadedHostIsTheBoardsFault) {
  v1::Exited exited = Exited(v1::EXIT_REASON_STARVED, SIGKILL, "");
  exited.set_starved_ns(8'100'000'000);
  const Ending ending = Judge(exited);
  EXPECT_EQ(ending.outcome, v1::OUTCOME_DEVICE_FAULT);
  EXPECT_NE(ending.detail.find("8.1 s"), std::string::npos) << ending.detail;
}

TEST(RunDelayTest, IsThatOfTheThreadThatWaitedLongest) {
  const std::string proc = ::testing::TempDir() + "/run-delay-test";
  for (const char* thread : {"7", "8"}) {
    std::filesystem::create_directories(proc + "/7/task/" + thread);
  }
  std::ofstream(proc + "/7/task/7/schedstat") << "900 20 3\n";
  std::ofstream(proc + "/7/task/8/schedstat") << "100 4000 5\n";
  EXPECT_EQ(RunDelayNs(7, proc), 4000);
  EXPECT_EQ(RunDelayNs(9, proc), 0);
  std::filesystem::remove_all(proc);
}

TEST(WorkerEndingTest, LimitsSayWhichAndHowMuch) {
  EXPECT_EQ(Judge(Exited(v1::EXIT_REASON_WALL_LIMIT, SIGKILL, "")).detail,
            "killed after 2.5 s in the first call");
  const Ending memory =
      Judge(Exited(v1::EXIT_REASON_MEMORY_LIMIT, SIGKILL, ""));
  EXPECT_EQ(memory.outcome, v1::OUTCOME_OUT_OF_MEMORY);
  EXPECT_EQ(memory.detail,
            "needs more than the limit of 64 MiB in the first call");
}

TEST(WorkerEndingTest, LeftoversAreTheBoardsFaultWhateverElseHappened) {
  v1::Exited exited = Exited(v1::EXIT_REASON_SIGNALLED, SIGSEGV, "");
  exited.set_leftovers(true);
  EXPECT_EQ(Judge(exited).outcome, v1::OUTCOME_DEVICE_FAULT);
  EXPECT_EQ(JudgeBuildWorker(exited, 1).outcome, v1::OUTCOME_DEVICE_FAULT);
}

TEST(WorkerEndingTest, ACompilerThatDiesIsACompileError) {
  const Ending ending = JudgeBuildWorker(
      Exited(v1::EXIT_REASON_SIGNALLED, SIGABRT, "LLVM ERROR: no\n"), 1 << 30);
  EXPECT_EQ(ending.outcome, v1::OUTCOME_COMPILE_ERROR);
  EXPECT_EQ(ending.detail,
            "the build worker ended with SIGABRT: LLVM ERROR: no");
}

TEST(WorkerEndingTest, ABuildThatTheBoardEndedIsNoCompileError) {
  const Ending killed = JudgeBuildWorker(
      Exited(v1::EXIT_REASON_SIGNALLED, SIGKILL, "words\n"), 1 << 30);
  EXPECT_EQ(killed.outcome, v1::OUTCOME_DEVICE_FAULT);
  EXPECT_EQ(killed.detail, "the build worker was killed from outside");
  for (const v1::ExitReason reason :
       {v1::EXIT_REASON_UNSPECIFIED, v1::EXIT_REASON_SANDBOX,
        v1::EXIT_REASON_STARVED, v1::EXIT_REASON_WALL_LIMIT}) {
    EXPECT_EQ(JudgeBuildWorker(Exited(reason, SIGKILL, ""), 1 << 30).outcome,
              v1::OUTCOME_DEVICE_FAULT)
        << v1::ExitReason_Name(reason);
  }
}

TEST(WorkerEndingTest, AStoppedBuildIsNoCompileError) {
  EXPECT_EQ(JudgeBuildWorker(
                Exited(v1::EXIT_REASON_KILLED_ON_REQUEST, SIGKILL, ""), 1 << 30)
                .outcome,
            v1::OUTCOME_CANCELLED);
}

// ---- duplicates ----

v1::TrialSpec Candidate(const std::string& id, int64_t job, int32_t task) {
  v1::TrialSpec spec;
  spec.set_trial_id(id);
  spec.set_job_id(job);
  spec.set_task(task);
  spec.set_kind(v1::TRIAL_KIND_CANDIDATE);
  return spec;
}

TEST(DuplicateIndexTest, KnowsTheFirstTrialWithTheSameCodeOfTheSameTask) {
  DuplicateIndex index;
  v1::TrialSpec first = Candidate("first", 1, 0);
  first.set_kind(v1::TRIAL_KIND_DEFAULT);
  EXPECT_EQ(index.EarlierTrial("s/1", first, "hash"), std::nullopt);
  index.Remember("s/2", first, "hash");
  EXPECT_EQ(index.EarlierTrial("s/1", Candidate("second", 1, 0), "hash"),
            "first");
  index.Remember("s/2", Candidate("second", 1, 0), "hash");
  EXPECT_EQ(index.EarlierTrial("s/1", Candidate("third", 1, 0), "hash"),
            "first");
  EXPECT_EQ(index.EarlierTrial("s/1", Candidate("third", 1, 0), "other"),
            std::nullopt);
  EXPECT_EQ(index.EarlierTrial("s/1", Candidate("x", 1, 1), "hash"),
            std::nullopt);
  EXPECT_EQ(index.EarlierTrial("s/1", Candidate("x", 2, 0), "hash"),
            std::nullopt);
  EXPECT_EQ(index.EarlierTrial("s/1", Candidate("first", 1, 0), "hash"),
            std::nullopt);
  // Other servers have jobs of the same number.
  EXPECT_EQ(index.EarlierTrial("t/1", Candidate("x", 1, 0), "hash"),
            std::nullopt);
  v1::TrialSpec cold = Candidate("x", 1, 0);
  cold.mutable_policy()->set_cache(v1::CACHE_STATE_COLD);
  EXPECT_EQ(index.EarlierTrial("s/1", cold, "hash"), std::nullopt);
}

// ---- references ----

class ReferenceStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/references-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Get(ReferenceStore& store, const std::string& key,
                  const std::string& content) {
    auto reference = store.Get(key, [&]() -> absl::StatusOr<UniqueFd> {
      ++made_;
      auto file = CreateMemoryFile("test");
      EXPECT_EQ(write(file->get(), content.data(), content.size()),
                static_cast<ssize_t>(content.size()));
      return file;
    });
    EXPECT_TRUE(reference.ok()) << reference.status();
    return std::string(MappedFile::Map((*reference)->get())->bytes());
  }
  std::string folder_;
  int made_ = 0;
};

TEST_F(ReferenceStoreTest, IsMadeOnceAndKeptAcrossRestarts) {
  {
    ReferenceStore store(folder_);
    EXPECT_EQ(Get(store, "k", "first"), "first");
    EXPECT_EQ(Get(store, "k", "second"), "first");
  }
  ReferenceStore store(folder_);
  EXPECT_EQ(Get(store, "k", "third"), "first");
  EXPECT_EQ(made_, 1);
}

TEST_F(ReferenceStoreTest, ADamagedFileIsMadeAgain) {
  for (const char* damage : {"", "short", "flip"}) {
    {
      ReferenceStore store(folder_);
      Get(store, "k", "content");
    }
    const std::string path = folder_ + "/k.reference";
    if (std::string(damage) == "flip") {
      std::fstream(path, std::ios::in | std::ios::out).seekp(66).put('X');
    } else {
      std::ofstream(path, std::ios::trunc) << damage;
    }
    made_ = 0;
    ReferenceStore store(folder_);
    EXPECT_EQ(Get(store, "k", "content"), "content") << damage;
    EXPECT_EQ(made_, 1) << damage;
  }
}

TEST_F(ReferenceStoreTest, WhatAKilledProcessBeganToWriteIsRemoved) {
  {
    ReferenceStore store(folder_);
    EXPECT_EQ(Get(store, "k", "content"), "content");
  }
  std::ofstream(folder_ + "/other.reference.4711") << "half of it";
  ReferenceStore store(folder_);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/other.reference.4711"));
  EXPECT_EQ(Get(store, "k", "content"), "content");
  EXPECT_EQ(made_, 1);
}

TEST_F(ReferenceStoreTest, AFailureIsHandedBackAndTriedAgain) {
  ReferenceStore store(folder_);
  EXPECT_EQ(store.Get("k", [] { return absl::InternalError("no"); }).status(),
            absl::InternalError("no"));
  EXPECT_EQ(Get(store, "k", "content"), "content");
}

TEST_F(ReferenceStoreTest, AFolderThatCannotBeUsedOnlyCostsTime) {
  std::ofstream(folder_ + "/file") << "x";
  ReferenceStore store(folder_ + "/file/below");
  EXPECT_EQ(Get(store, "k", "content"), "content");
  EXPECT_EQ(Get(store, "k", "content"), "content");
  EXPECT_EQ(made_, 1);
}

// ---- workloads ----

TEST(WorkloadFactsTest, ReductionLengthIsTheLongestChainOfSums) {
  struct Row {
    const char* text;
    int64_t length;
  };
  for (const Row& row :
       {Row{"matmul(m=4,n=5,k=6)", 6},
        Row{"conv2d(n=1,h=8,w=8,ci=3,co=4,kh=3,kw=3,stride=1,pad=1)", 27},
        Row{"B[i] = A[i] * 2 where i=9", 1},
        Row{"C[i] = sum(k) A[i,k] * B[k]; D[i] = C[i] * 2; "
            "E[j] = sum(i) D[i] * F[i,j] where i=10, j=3, k=7",
            17}}) {
    auto workload = ParseWorkload(row.text);
    ASSERT_TRUE(workload.ok()) << workload.status();
    EXPECT_EQ(ReductionLength(*workload), row.length) << row.text;
    EXPECT_TRUE(AllF32(*workload)) << row.text;
  }
  EXPECT_FALSE(AllF32(*ParseWorkload("matmul(m=4,n=5,k=6,dtype=i8)")));
}

}  // namespace
}  // namespace regatta
