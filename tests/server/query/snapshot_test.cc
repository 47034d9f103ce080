// A snapshot, the log it was made from and a server on that log give the same
// answers.
#include "server/query/snapshot.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "regatta/v1/tuning_service.grpc.pb.h"
#include "server/job/job_manager.h"
#include "server/query/best_file.h"
#include "server/query/workload_info.h"
#include "server/server_snapshot.h"
#include "server/tuning_server.h"
#include "tests/server/query/planted_log.h"
#include "tests/server/query/snapshot_fixture.h"
#include "tests/server/support/spaces.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using testing::kClassA;
using testing::kClassB;
using testing::Line;
using testing::PlantedQuestions;

// Answers every question over gRPC, as a server on this log does while one
// board of class B is registered.
std::vector<std::string> AskServer(TuningLog& log, std::string* snapshot) {
  class NoTracker : public Dispatcher {
    void Submit(std::vector<v1::Work>) override {}
    void CancelWork(const v1::CancelWork&) override {}
    void Acknowledge(const v1::CommitAck&) override {}
    void Reattach() override {}
    void OfferCanaries(const v1::Canaries&) override {}
    void AskFleet() override {}
  } dispatcher;
  JobManagerOptions options;
  options.log = &log;
  options.dispatcher = &dispatcher;
  options.clock = &RealClock();
  options.compiler_version = Version;
  auto jobs = JobManager::Create(options);
  CHECK(jobs.ok()) << jobs.status();
  v1::FleetChange fleet;
  fleet.set_snapshot(v1::SNAPSHOT_PART_WHOLE);
  v1::DeviceStatus* device = fleet.add_devices();
  device->mutable_info()->set_device_id("b");
  device->mutable_info()->set_device_class(kClassB);
  device->mutable_info()->set_target(testing::kOtherTargetText);
  device->mutable_info()->set_cores(1);
  (*jobs)->OnFleetChange(fleet);
  TuningServiceOptions service_options;
  service_options.jobs = jobs->get();
  service_options.log = &log;
  service_options.clock = &RealClock();
  service_options.complete_target = Complete;
  service_options.compiler_version = Version;
  TuningServiceImpl service(service_options);
  const auto write = [&](const UpkeepProgress& progress) {
    return WriteServerSnapshot(log, **jobs, Complete, Version,
                               /*gives_binary=*/nullptr, progress);
  };
  LogServiceImpl log_service(&log, DescribeWorkloadText, write);
  auto server = TuningServer::Start("127.0.0.1:0", &service, &log_service);
  CHECK(server.ok()) << server.status();
  const auto channel = grpc::CreateChannel((*server)->address(),
                                           grpc::InsecureChannelCredentials());
  const auto stub = v1::TuningService::NewStub(channel);
  std::vector<std::string> answers;
  for (const v1::BestRequest& question : PlantedQuestions()) {
    grpc::ClientContext context;
    v1::BestAnswer answer;
    const grpc::Status status = stub->Best(&context, question, &answer);
    answers.push_back(
        status.ok() ? Line(answer)
                    : Line(absl::Status(
                          static_cast<absl::StatusCode>(status.error_code()),
                          status.error_message())));
  }
  grpc::ClientContext context;
  const auto reader = v1::LogService::NewStub(channel)->Snapshot(
      &context, v1::SnapshotLogRequest());
  v1::SnapshotLogResponse response;
  while (reader->Read(&response)) snapshot->append(response.chunk());
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(response.end().file_bytes(),
            static_cast<int64_t>(snapshot->size()));
  (*jobs)->Close();
  return answers;
}

TEST_F(SnapshotTest, AnswersAsTheServerAndTheLogDo) {
  std::string served;
  const auto expected = AskServer(*log_, &served);
  const auto questions = PlantedQuestions();
  const auto by_server = OpenBytes(served);
  const auto from_server = AskFile(*by_server);
  ASSERT_EQ(from_server.size(), expected.size());
  for (size_t i = 0; i < questions.size(); ++i) {
    EXPECT_EQ(from_server[i], expected[i]) << questions[i].ShortDebugString();
  }
  // Once more, now from what was kept.
  EXPECT_EQ(AskFile(*by_server), expected);

  log_.reset();
  auto file = BestFile::OpenLog(Path("one.db"), FileOptions());
  ASSERT_TRUE(file.ok()) << file.status();
  const auto from_log = AskFile(**file);
  for (const size_t rows : {3, 1000}) {  // too few, enough
    BestFileOptions whole = FileOptions();
    whole.read_whole_rows = rows;
    const auto read = BestFile::OpenLog(Path("one.db"), whole);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(AskFile(**read), from_log) << rows;
  }
  const auto from_snapshot = AskFile(*OpenBytes(bytes_));
  std::set<std::string> grades;
  for (size_t i = 0; i < questions.size(); ++i) {
    EXPECT_EQ(from_log[i], from_snapshot[i]) << questions[i].ShortDebugString();
    // A file of a log alone cannot know that class B has one core.
    if (questions[i].policy().threads() != 2) {
      EXPECT_EQ(from_log[i], expected[i]) << questions[i].ShortDebugString();
    }
    const auto answer = (*file)->Answer(questions[i], 5);
    grades.insert(answer.ok() ? answer->grade() : "error");
  }
  EXPECT_THAT(grades, ::testing::UnorderedElementsAre(
                          "exact", "compatible", "neighbour_shape",
                          "neighbour_device", "default", "error"));
}

TEST_F(SnapshotTest, TheSameRowsGiveTheSameBytes) {
  EXPECT_EQ(*WriteSnapshot(*log_, WriteOptions()), bytes_);
  const auto other = Plant("two.db");
  EXPECT_NE(other->LogId(), log_->LogId());
  EXPECT_EQ(*WriteSnapshot(*other, WriteOptions()), bytes_);
}

TEST_F(SnapshotTest, ProgressHearsOfItAndCanStopIt) {
  SnapshotOptions options = WriteOptions();
  std::vector<std::string> phases;
  options.progress = [&](const std::string& phase, int64_t, int64_t) {
    phases.push_back(phase);
    return true;
  };
  EXPECT_EQ(*WriteSnapshot(*log_, options), bytes_);
  ASSERT_FALSE(phases.empty());
  EXPECT_EQ(phases[0], "reading best-known answers");
  options.progress = [](const std::string&, int64_t, int64_t) { return false; };
  const auto stopped = WriteSnapshot(*log_, options);
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
}

TEST_F(SnapshotTest, RowsHoldWhatTheLogSaysAndLeaveDisprovedOnesOut) {
  const auto snapshot = Snapshot::FromBytes(bytes_, "it");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  int rows = 0;
  ASSERT_TRUE(log_->ForEachBest(
                      [&](const WorkloadInfo& workload, const BestKnown& best) {
                        ++rows;
                        const auto row = (*snapshot)->Best(best.key);
                        EXPECT_TRUE(row.ok() && row->has_value());
                        const v1::TrialResult& ours = (*row)->record.result;
                        const v1::TrialResult& theirs = best.record.result;
                        EXPECT_EQ(ours.spec().schedule().SerializeAsString(),
                                  theirs.spec().schedule().SerializeAsString());
                        EXPECT_EQ(ours.spec().target(), theirs.spec().target());
                        EXPECT_EQ(ours.provenance(), theirs.provenance());
                        EXPECT_EQ(ours.binary_hash(), theirs.binary_hash());
                        EXPECT_EQ((*row)->time_ns, best.time_ns);
                        EXPECT_EQ((*row)->samples, best.samples);
                        EXPECT_EQ((*row)->boards, best.boards);
                        EXPECT_EQ((*row)->speedup, best.speedup);
                        EXPECT_EQ((*row)->confirmed, best.confirmed);
                        EXPECT_EQ((*row)->record.extents, workload.extents);
                        return true;
                      })
                  .ok());
  EXPECT_EQ(static_cast<size_t>(rows), (*snapshot)->rows());
  EXPECT_EQ(rows, 9);  // ten workloads, one of which was only wrong
  for (const bool imported : {false, true}) {
    EXPECT_EQ(*(*snapshot)->DeviceClasses(imported),
              *log_->DeviceClasses(imported));
  }
  EXPECT_EQ(*(*snapshot)->FactsOfClasses(), *log_->FactsOfClasses());
}

TEST_F(SnapshotTest, RowsOfAnotherLogAreSuggestionsAsInTheLog) {
  {
    auto ours = OpenTuningLog(Path("ours.db"));
    ASSERT_TRUE(ours.ok());
    testing::PlantLittle(**ours, kCompiler);
    std::vector<v1::LogEntry> entries;
    ASSERT_TRUE(log_->exchange()
                    .Export([&](const v1::LogEntry& entry) {
                      entries.push_back(entry);
                      return true;
                    })
                    .ok());
    std::vector<const v1::LogEntry*> pointers;
    for (const v1::LogEntry& entry : entries) pointers.push_back(&entry);
    const auto verdicts = (*ours)->exchange().Import(
        pointers, {.name = "lab-b", .describe = DescribeWorkloadText});
    ASSERT_TRUE(verdicts.ok()) << verdicts.status();
    int added = 0;
    for (const v1::ImportVerdict& verdict : *verdicts) {
      EXPECT_NE(verdict.status(), v1::ImportVerdict::STATUS_REFUSED)
          << verdict.reason();
      added += verdict.status() == v1::ImportVerdict::STATUS_ADDED;
    }
    EXPECT_GT(added, 10);
    bytes_ = *WriteSnapshot(**ours, WriteOptions());
  }
  auto file = BestFile::OpenLog(Path("ours.db"), FileOptions());
  ASSERT_TRUE(file.ok()) << file.status();
  const auto snapshot = OpenBytes(bytes_);
  EXPECT_EQ(AskFile(*snapshot), AskFile(**file));
  const auto answer = snapshot->Answer(PlantedQuestions()[0], 5);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->grade(), "neighbour_shape");
  v1::BestRequest confirmed = PlantedQuestions()[0];
  confirmed.set_workload("conv2d(n=1,h=14,w=14,ci=16,co=16,kh=3,kw=3,pad=1)");
  const auto other = snapshot->Answer(confirmed, 5);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->grade(), "neighbour_device");
  EXPECT_EQ(other->differing_field(), "provenance");
  EXPECT_EQ(other->time_ns(), 0);
}

// A log knows a class by its name alone.
TEST_F(SnapshotTest, SimulatedClassesOfALogAnswerForNoTarget) {
  for (const bool simulated : {false, true}) {
    const std::string name = simulated ? "simulated-b-4c" : "real-b-4c";
    const std::string path = Path(name + ".db");
    {
      const auto log = OpenTuningLog(path);
      ASSERT_TRUE(log.ok());
      testing::PlantOn(**log, kCompiler, "matmul(m=16,n=16,k=16)",
                       name.c_str());
    }
    v1::BestRequest request;
    request.set_workload("matmul(m=16,n=16,k=16)");
    request.set_target(testing::kOtherTargetText);
    for (const size_t rows : {0, 1000}) {
      BestFileOptions options = FileOptions();
      options.read_whole_rows = rows;
      const auto file = BestFile::OpenLog(path, options);
      ASSERT_TRUE(file.ok()) << file.status();
      const auto answer = (*file)->Answer(request, 5);
      ASSERT_TRUE(answer.ok()) << answer.status();
      EXPECT_EQ(answer->grade(), simulated ? "default" : "compatible") << rows;
    }
  }
}

TEST_F(SnapshotTest, AnEmptyLogMakesASnapshotThatHasNoClass) {
  auto empty = OpenTuningLog(Path("empty.db"));
  ASSERT_TRUE(empty.ok());
  const auto file = OpenBytes(*WriteSnapshot(**empty, WriteOptions()));
  const auto answer = file->Answer(PlantedQuestions()[0], 5);
  EXPECT_TRUE(absl::IsNotFound(answer.status())) << answer.status();
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("best.rgs"));
}

TEST_F(SnapshotTest, ManyThreadsGetTheSameAnswers) {
  const auto file = OpenBytes(bytes_);
  const auto expected = AskFile(*OpenBytes(bytes_));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(AskFile(*file), expected); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(SnapshotTest, RowsOfAnotherCompilerThatGiveTheSameBinaryAreExact) {
  const auto log = OpenTuningLog(Path("older.db"));
  ASSERT_TRUE(log.ok()) << log.status();
  testing::PlantLog(**log, "fedcba9876543210/LLVM 18");
  const v1::BestRequest question = PlantedQuestions()[0];
  const auto grade = [&](const SnapshotOptions& options, const char* reader) {
    const auto bytes = WriteSnapshot(**log, options);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    testing::WriteFile(Path("older.rgs"), *bytes);
    auto file = BestFile::OpenSnapshot(
        Path("older.rgs"),
        {.complete = Complete, .compiler_version = [=](const Target&) {
           return absl::StatusOr<std::string>(reader);
         }});
    EXPECT_TRUE(file.ok()) << file.status();
    const auto answer = (*file)->Answer(question, 5);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer->grade();
  };
  SnapshotOptions options = WriteOptions();
  EXPECT_EQ(grade(options, kCompiler), "compatible");
  int asked = 0;
  options.gives_binary = [&](const RecordedBinary& binary) {
    ++asked;
    EXPECT_EQ(binary.hash, Sha256Hex(binary.schedule.text()));
    EXPECT_EQ(binary.target->compiler_version, kCompiler);
    return false;
  };
  EXPECT_EQ(grade(options, kCompiler), "compatible");
  EXPECT_GT(asked, 0);
  options.gives_binary = [](const RecordedBinary&) { return true; };
  EXPECT_EQ(grade(options, kCompiler), "exact");
  EXPECT_EQ(grade(options, "0000000000000000/LLVM 20"), "compatible");
  // Nothing is built again where the compiler measured the row itself: all rows
  // of the other log but one.
  asked = 0;
  options.gives_binary = [&](const RecordedBinary&) {
    ++asked;
    return false;
  };
  EXPECT_TRUE(*WriteSnapshot(*log_, options) == bytes_);
  EXPECT_EQ(asked, 1);
}

// Written by another release: its marks and texts are not trusted.
TEST_F(SnapshotTest, AnotherReleaseLooksAtEveryRowItself) {
  testing::WriteFile(Path("best.rgs"), bytes_);
  const char* now = "fedcba9876543210/LLVM 20";
  auto file = BestFile::OpenSnapshot(
      Path("best.rgs"),
      {.complete = Complete, .compiler_version = [&](const Target&) {
         return absl::StatusOr<std::string>(now);
       }});
  ASSERT_TRUE(file.ok()) << file.status();
  const auto answer = (*file)->Answer(PlantedQuestions()[0], 5);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->grade(), "compatible");
  EXPECT_EQ(answer->differing_field(), "compiler_version");
}

}  // namespace
}  // namespace regatta
