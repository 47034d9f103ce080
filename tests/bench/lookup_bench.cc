// What a best-known lookup costs a client: through libregatta_query from a
// snapshot and from a log, and through gRPC from a server on loopback.
//
// The log is planted (planted_log.h). Every figure is printed with how it was
// obtained; batches are of questions that no handle has seen before ("first")
// and of the same ones again.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/check.h"
#include "base/clock.h"
#include "client/query/regatta_query.h"
#include "compiler/compile.h"
#include "regatta/v1/tuning_service.grpc.pb.h"
#include "server/job/job_manager.h"
#include "server/query/snapshot_writer.h"
#include "server/query/workload_info.h"
#include "server/tuning_server.h"
#include "tests/bench/planted_log.h"
#include "tests/bench/storage_measures.h"

namespace regatta::bench {
namespace {

constexpr int kBatch = 2000;

struct Question {
  std::string workload;
  BestKey key;
};

absl::StatusOr<std::string> Version(const Target& target) {
  return CompilerVersion(target);
}

std::vector<Question> Recorded(const PlantedLog& plan) {
  std::vector<Question> questions;
  for (int64_t i = 0; i < kBatch; ++i) {
    const int64_t job = i % plan.jobs();
    questions.push_back(
        {plan.workloads()[plan.WorkloadOfJob(job)].workload.text,
         plan.KeyOfJob(job)});
  }
  return questions;
}

// Shapes that nobody measured, beside some that were.
std::vector<Question> Unrecorded(const PlantedLog& plan) {
  std::vector<Question> questions = Recorded(plan);
  for (int i = 0; i < kBatch; ++i) {
    questions[i].workload =
        "matmul(m=" + std::to_string(33 + i) + ",n=77,k=1234)";
  }
  return questions;
}

double Milliseconds(const std::function<void()>& work) {
  return SecondsOf(work) * 1e3;
}

void Print(const char* what, double value, const char* unit) {
  std::printf("%-58s %10.3f %s\n", what, value, unit);
  std::fflush(stdout);
}

// Asks in one call; returns the milliseconds.
double AskBatch(regatta_query* query, const std::vector<Question>& questions,
                std::set<std::string>* grades) {
  std::vector<regatta_query_question> asked;
  for (const Question& question : questions) {
    regatta_query_question one = {};
    one.size = sizeof(one);
    one.workload = question.workload.c_str();
    one.device_class = question.key.device_class.c_str();
    one.threads = question.key.threads;
    one.cache = question.key.cache == v1::CACHE_STATE_COLD ? REGATTA_QUERY_COLD
                                                           : REGATTA_QUERY_WARM;
    asked.push_back(one);
  }
  regatta_query_error error;
  regatta_query_answers* answers = nullptr;
  const double ms = Milliseconds([&] {
    answers = regatta_query_ask(query, asked.data(), asked.size(), &error);
  });
  CHECK(answers != nullptr) << error.message;
  for (size_t i = 0; i < regatta_query_count(answers); ++i) {
    const regatta_query_answer* answer = regatta_query_get(answers, i);
    CHECK(answer->code == REGATTA_QUERY_OK) << answer->message;
    grades->insert(answer->grade_name);
  }
  regatta_query_free(answers);
  return ms;
}

void MeasureLibrary(const std::string& path, const char* name,
                    const PlantedLog& plan, int rounds) {
  std::vector<double> open, first, again, miss, miss_again;
  std::set<std::string> grades;
  for (int i = 0; i < rounds; ++i) {
    regatta_query_error error;
    regatta_query* query = nullptr;
    open.push_back(
        SecondsOf([&] { query = regatta_query_open(path.c_str(), &error); }));
    CHECK(query != nullptr) << error.message;
    first.push_back(AskBatch(query, Recorded(plan), &grades));
    again.push_back(AskBatch(query, Recorded(plan), &grades));
    miss.push_back(AskBatch(query, Unrecorded(plan), &grades));
    miss_again.push_back(AskBatch(query, Unrecorded(plan), &grades));
    regatta_query_close(query);
  }
  std::printf("\nlibregatta_query on the %s, medians of %d openings; grades:",
              name, rounds);
  for (const std::string& grade : grades) std::printf(" %s", grade.c_str());
  std::printf("\n");
  Print("open", SpreadOf(open).median * 1e3, "ms");
  Print("2000 recorded questions, first", SpreadOf(first).median, "ms");
  Print("  the same again", SpreadOf(again).median, "ms");
  Print("2000 shapes that nobody measured, first", SpreadOf(miss).median, "ms");
  Print("  the same again", SpreadOf(miss_again).median, "ms");
}

void MeasureServer(TuningLog& log, const PlantedLog& plan, int calls) {
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
  std::set<std::string> classes;
  for (int64_t job = 0; job < plan.jobs(); ++job) {
    classes.insert(plan.KeyOfJob(job).device_class);
  }
  for (const std::string& name : classes) {
    v1::DeviceInfo* info = fleet.add_devices()->mutable_info();
    info->set_device_id("board-" + name);
    info->set_device_class(name);
    info->set_target(plan.target().ToString());
    info->set_cores(64);
  }
  (*jobs)->OnFleetChange(fleet);
  TuningServiceOptions service_options;
  service_options.jobs = jobs->get();
  service_options.log = &log;
  service_options.clock = &RealClock();
  service_options.complete_target = CompleteTarget;
  service_options.compiler_version = Version;
  TuningServiceImpl service(service_options);
  LogServiceImpl log_service(&log, DescribeWorkloadText,
                             [](const UpkeepProgress&) {
                               return absl::StatusOr<std::string>(
                                   absl::UnimplementedError("not here"));
                             });
  auto server = TuningServer::Start("127.0.0.1:0", &service, &log_service);
  CHECK(server.ok()) << server.status();
  const auto stub = v1::TuningService::NewStub(grpc::CreateChannel(
      (*server)->address(), grpc::InsecureChannelCredentials()));
  const auto questions = Recorded(plan);
  const Spread spread = TimeEach(calls, [&](int i) {
    const Question& question = questions[i % questions.size()];
    v1::BestRequest request;
    request.set_workload(question.workload);
    request.set_device_class(question.key.device_class);
    request.mutable_policy()->set_threads(question.key.threads);
    request.mutable_policy()->set_cache(question.key.cache);
    v1::BestAnswer answer;
    grpc::ClientContext context;
    const grpc::Status status = stub->Best(&context, request, &answer);
    CHECK(status.ok()) << status.error_message();
  });
  std::printf("\ngRPC on loopback, %d calls one after the other\n", calls);
  Print("a lookup, median", spread.median * 1e6, "us");
  Print("a lookup, 99th percentile", spread.p99 * 1e6, "us");
  (*jobs)->Close();
}

void Run(const std::string& folder, int64_t records, int rounds) {
  const std::string log_path = folder + "/lookup_bench.db";
  const std::string snapshot_path = folder + "/lookup_bench.rgs";
  const PlantedLog plan(records, 1);
  {
    auto log = OpenTuningLog(log_path);
    CHECK(log.ok()) << log.status();
    CHECK(plan.WriteTo(**log, 4).ok());
    std::printf("%lld records planted\n",
                static_cast<long long>(*(*log)->CountRecords()));
    SnapshotOptions options;
    options.compiler_version = CompilerVersion(Target());
    options.make_target = MakeTargetWith(CompleteTarget, Version);
    absl::StatusOr<std::string> bytes;
    const double ms =
        Milliseconds([&] { bytes = WriteSnapshot(**log, options); });
    CHECK(bytes.ok()) << bytes.status();
    std::FILE* file = std::fopen(snapshot_path.c_str(), "wb");
    CHECK(file != nullptr &&
          std::fwrite(bytes->data(), 1, bytes->size(), file) == bytes->size());
    std::fclose(file);
    Print("writing the snapshot", ms, "ms");
    Print("its size", static_cast<double>(bytes->size()) / 1024, "KiB");
    MeasureServer(**log, plan, 4000);
  }
  MeasureLibrary(snapshot_path, "snapshot", plan, rounds);
  MeasureLibrary(log_path, "log file", plan, rounds);
  for (const char* suffix : {".db", ".db.lock", ".db-wal", ".db-shm", ".rgs"}) {
    std::filesystem::remove(folder + "/lookup_bench" + suffix);
  }
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) {
  std::string folder = std::filesystem::temp_directory_path();
  int64_t records = 100000;
  int rounds = 5;
  CLI::App app("Cost of best-known lookups", "lookup_bench");
  app.add_option("--dir", folder, "Folder for the log and the snapshot");
  app.add_option("--records", records, "Records in the log");
  app.add_option("--rounds", rounds, "Openings that medians are of");
  CLI11_PARSE(app, argc, argv);
  regatta::bench::Run(folder, records, rounds);
  return 0;
}
