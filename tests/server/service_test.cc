// The gRPC shells over loopback: a client on one side, a tracker that the test
// plays on the other.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "proto/outcome_names.h"
#include "regatta/v1/dispatch_service.grpc.pb.h"
#include "regatta/v1/tuning_service.grpc.pb.h"
#include "server/query/workload_info.h"
#include "server/server_snapshot.h"
#include "server/tracker_client.h"
#include "server/tuning_server.h"
#include "storage/tuning_log.h"
#include "tests/server/support/server_world.h"
#include "tests/support/process.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using testing::kClass;
using testing::kCompiler;
using testing::kTargetText;
using testing::ServerWorld;
using testing::TempDir;

constexpr char kMatmul[] = "matmul(m=64,n=64,k=64)";

// A tracker with one board that answers all work at once.
class PlayedTracker : public v1::DispatchService::Service {
 public:
  explicit PlayedTracker(ServerWorld* world) : world_(world) {}

  grpc::Status Dispatch(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::DispatchEvent, v1::DispatchRequest>* stream)
      override {
    v1::DispatchRequest request;
    if (!stream->Read(&request) || !request.has_attach()) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "attach first");
    }
    {
      std::lock_guard lock(mutex_);
      server_id_ = request.attach().server_id();
      context_ = context;
      ++attached_;
    }
    changed_.notify_all();
    v1::DispatchEvent event;
    event.mutable_attached()->set_tracker_epoch(1);
    stream->Write(event);
    event.Clear();
    event.mutable_fleet_change()->set_snapshot(v1::SNAPSHOT_PART_WHOLE);
    v1::DeviceStatus* device = event.mutable_fleet_change()->add_devices();
    device->set_presence(v1::PRESENCE_ONLINE);
    device->set_compiler_version(kCompiler);
    device->mutable_info()->set_device_id("board");
    device->mutable_info()->set_device_class(kClass);
    device->mutable_info()->set_target(kTargetText);
    device->mutable_info()->set_cores(2);
    device->mutable_info()->set_credit(2);
    stream->Write(event);
    while (stream->Read(&request)) {
      for (const v1::Work& work : request.submit().work()) {
        event.Clear();
        std::lock_guard lock(mutex_);
        const uint64_t session = ++sessions_;
        for (const v1::TrialSpec& spec : work.trials()) {
          *event.mutable_results()->add_results() = world_->fleet().Measure(
              spec, work.mode() == v1::ASSIGNMENT_MODE_INTERLEAVE,
              world_->fleet().boards()[0], session);
        }
        stream->Write(event);
      }
      std::lock_guard lock(mutex_);
      for (const v1::TrialAck& ack : request.commit_ack().acks()) {
        EXPECT_NE(ack.status(), v1::ACK_STATUS_REJECTED) << ack.reason();
        ++acks_;
      }
    }
    std::lock_guard lock(mutex_);
    context_ = nullptr;
    return grpc::Status::OK;
  }

  grpc::Status ListDevices(grpc::ServerContext* context,
                           const v1::ListDevicesRequest* request,
                           v1::ListDevicesResponse* response) override {
    response->add_devices()->mutable_info()->set_device_id("board");
    return grpc::Status::OK;
  }

  void WaitForAttachment(int n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return attached_ >= n; });
  }
  void BreakStream() {
    std::lock_guard lock(mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }
  std::string server_id() {
    std::lock_guard lock(mutex_);
    return server_id_;
  }

 private:
  ServerWorld* world_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string server_id_;
  grpc::ServerContext* context_ = nullptr;
  int attached_ = 0;
  int acks_ = 0;
  uint64_t sessions_ = 0;
};

class Service : public ::testing::Test {
 protected:
  Service() : tracker_(&world_) {
    world_.Kill();  // its log, landscape and clock are used, not its server
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(&tracker_);
    tracker_server_ = builder.BuildAndStart();
    client_ = std::make_unique<TrackerClient>(absl::StrCat("127.0.0.1:", port),
                                              world_.plain_log().LogId());
    JobManagerOptions options;
    options.log = &world_.plain_log();
    options.dispatcher = client_.get();
    options.clock = &RealClock();
    options.compiler_version = [](const Target&) { return kCompiler; };
    jobs_ = *JobManager::Create(options);
    TuningServiceOptions service;
    service.jobs = jobs_.get();
    service.log = &world_.plain_log();
    service.clock = &RealClock();
    service.complete_target = [](const Target& target) { return target; };
    service.compiler_version = options.compiler_version;
    service.list_devices = [this] { return client_->ListDevices(); };
    service_ = std::make_unique<TuningServiceImpl>(service);
    log_service_ = std::make_unique<LogServiceImpl>(
        &world_.plain_log(), DescribeWorkloadText,
        [this](const UpkeepProgress& progress) {
          return WriteServerSnapshot(
              world_.plain_log(), *jobs_,
              [](const Target& target) { return target; },
              [](const Target&) { return std::string(testing::kCompiler); },
              /*gives_binary=*/nullptr, progress);
        });
    auto server =
        TuningServer::Start("127.0.0.1:0", service_.get(), log_service_.get());
    CHECK(server.ok()) << server.status();
    server_ = *std::move(server);
    runner_ = std::thread([this] { jobs_->Run(); });
    stub_ = v1::TuningService::NewStub(grpc::CreateChannel(
        server_->address(), grpc::InsecureChannelCredentials()));
  }

  ~Service() override {
    jobs_->Close();
    server_->Stop(absl::Milliseconds(100));
    client_->Stop();
    runner_.join();
    tracker_server_->Shutdown();
  }

  // Attached, and the boards are known.
  void StartTracking() {
    client_->Start(jobs_.get());
    tracker_.WaitForAttachment(1);
    while (!jobs_->fleet()->known()) std::this_thread::yield();
  }

  v1::SubmitJobRequest Request(int64_t trials) {
    v1::SubmitJobRequest request;
    request.add_tasks()->set_workload(kMatmul);
    request.mutable_tasks(0)->set_trials(trials);
    return request;
  }

  std::vector<v1::Job> Watch(int64_t job_id) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::minutes(2));
    v1::GetJobRequest request;
    request.set_job_id(job_id);
    auto reader = stub_->WatchJob(&context, request);
    std::vector<v1::Job> seen;
    v1::Job job;
    while (reader->Read(&job)) seen.push_back(job);
    status_ = reader->Finish();
    return seen;
  }

  ServerWorld world_;
  PlayedTracker tracker_;
  std::unique_ptr<grpc::Server> tracker_server_;
  std::unique_ptr<TrackerClient> client_;
  std::unique_ptr<JobManager> jobs_;
  std::unique_ptr<TuningServiceImpl> service_;
  std::unique_ptr<LogServiceImpl> log_service_;
  std::unique_ptr<TuningServer> server_;
  std::thread runner_;
  std::unique_ptr<v1::TuningService::Stub> stub_;
  grpc::Status status_;
};

// Each holds a connection to the log, and much memory.
TEST(LogServiceLimits, TheWholeLogIsReadForAFewAtATime) {
  const TempDir dir;
  const auto log = *OpenTuningLog(dir.path() + "/log");
  std::atomic<int> running = 0;
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  LogServiceImpl service(
      log.get(), DescribeWorkloadText,
      [&](const UpkeepProgress&) -> absl::StatusOr<std::string> {
        ++running;
        gone.wait();
        return std::string("a snapshot");
      });
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  const auto stub = v1::LogService::NewStub(grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  const auto end_of = [](auto reader, auto response) {
    while (reader->Read(&response)) {
    }
    return reader->Finish();
  };
  const auto snapshot = [&] {
    grpc::ClientContext context;
    return end_of(stub->Snapshot(&context, v1::SnapshotLogRequest()),
                  v1::SnapshotLogResponse());
  };
  std::vector<std::future<grpc::Status>> first;
  for (int i = 0; i < LogServiceImpl::kMaxWholeReads; ++i) {
    first.push_back(std::async(std::launch::async, snapshot));
  }
  while (running < LogServiceImpl::kMaxWholeReads) std::this_thread::yield();
  grpc::ClientContext check, rebuild, backup;
  for (const grpc::Status& status :
       {snapshot(),
        end_of(stub->Check(&check, v1::CheckLogRequest()),
               v1::CheckLogResponse()),
        end_of(stub->Rebuild(&rebuild, v1::RebuildLogRequest()),
               v1::RebuildLogResponse())}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(), HasSubstr("try again after one"));
  }
  // Of which there is one at a time anyway.
  EXPECT_TRUE(end_of(stub->Backup(&backup, v1::BackupLogRequest()),
                     v1::BackupLogResponse())
                  .ok());
  go.set_value();
  for (auto& status : first) EXPECT_TRUE(status.get().ok());
  EXPECT_TRUE(snapshot().ok());
}

TEST_F(Service, RunsAJobAndStreamsItToItsEnd) {
  StartTracking();
  EXPECT_EQ(tracker_.server_id(), world_.plain_log().LogId());
  grpc::ClientContext submit;
  v1::Job job;
  ASSERT_TRUE(stub_->SubmitJob(&submit, Request(30), &job).ok());
  const absl::Time start = RealClock().Wall();
  const std::vector<v1::Job> seen = Watch(job.job_id());
  EXPECT_TRUE(status_.ok()) << status_.error_message();
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().state(), v1::JOB_STATE_DONE) << seen.back().reason();
  EXPECT_EQ(seen.back().tasks(0).trials(), 30);
  for (size_t i = 0; i + 1 < seen.size(); ++i) {
    EXPECT_FALSE(IsEnded(seen[i].state())) << "ends after the final status";
  }
  const double seconds = absl::ToDoubleSeconds(RealClock().Wall() - start);
  EXPECT_LE(seen.size(), 2 + seconds * 10) << "at most ten a second";

  grpc::ClientContext best;
  v1::BestRequest request;
  request.set_workload(kMatmul);
  request.set_device_class(kClass);
  v1::BestAnswer answer;
  ASSERT_TRUE(stub_->Best(&best, request, &answer).ok());
  EXPECT_EQ(answer.grade(), "exact");
  EXPECT_EQ(answer.schedule().text(), seen.back().tasks(0).schedule());

  grpc::ClientContext list;
  v1::ListRecordsRequest records;
  records.set_workload(kMatmul);
  auto reader = stub_->ListRecords(&list, records);
  v1::ListRecordsResponse page;
  int count = 0;
  while (reader->Read(&page)) count += page.records_size();
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(count, *world_.plain_log().CountRecords());

  grpc::ClientContext devices;
  v1::ListDevicesResponse listed;
  ASSERT_TRUE(
      stub_->ListDevices(&devices, v1::ListDevicesRequest(), &listed).ok());
  EXPECT_EQ(listed.devices(0).info().device_id(), "board");
}

TEST_F(Service, StreamsTheEndOfAJobThatOnlyTheLogHolds) {
  StartTracking();
  for (size_t i = 0; i <= JobManager::kKeptEnded; ++i) {
    const auto job = jobs_->Submit(Request(1000));
    ASSERT_TRUE(job.ok()) << job.status();
    ASSERT_TRUE(jobs_->Cancel(job->job_id()).ok());
  }
  jobs_->Step();
  const std::vector<v1::Job> seen = Watch(1);
  EXPECT_TRUE(status_.ok()) << status_.error_message();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(Service, AttachesAgainAfterTheStreamBreaksAndLosesNothing) {
  StartTracking();
  grpc::ClientContext submit;
  v1::Job job;
  ASSERT_TRUE(stub_->SubmitJob(&submit, Request(200), &job).ok());
  for (int n = 2; n <= 4; ++n) {
    tracker_.BreakStream();
    tracker_.WaitForAttachment(n);
  }
  const std::vector<v1::Job> seen = Watch(job.job_id());
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().state(), v1::JOB_STATE_DONE) << seen.back().reason();
  EXPECT_EQ(seen.back().tasks(0).trials(), 200);
}

TEST_F(Service, RefusesWithTheRightCodesAndWords) {
  StartTracking();
  v1::Job job;
  v1::SubmitJobRequest bad = Request(10);
  bad.mutable_tasks(0)->set_workload("matmull(m=1)");
  grpc::ClientContext submit;
  grpc::Status status = stub_->SubmitJob(&submit, bad, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("matmull"));

  v1::GetJobRequest get;
  get.set_job_id(9);
  grpc::ClientContext get_context;
  status = stub_->GetJob(&get_context, get, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(Watch(9).empty());
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::NOT_FOUND);

  v1::BestRequest best;
  best.set_workload(kMatmul);
  best.set_device_class("m1-8c");
  grpc::ClientContext best_context;
  v1::BestAnswer answer;
  status = stub_->Best(&best_context, best, &answer);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr(kClass));

  bad = Request(10);
  bad.set_name(std::string(11 << 20, 'x'));
  grpc::ClientContext large;
  status = stub_->SubmitJob(&large, bad, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// A client that watches and never reads holds a place, and nothing else.
TEST_F(Service, WatchersWhoDoNotReadHoldUpNobodyAndAreBounded) {
  StartTracking();
  grpc::ClientContext submit;
  v1::Job job;
  ASSERT_TRUE(stub_->SubmitJob(&submit, Request(100000), &job).ok());
  v1::GetJobRequest request;
  request.set_job_id(job.job_id());
  struct Watcher {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::Job>> reader;
  };
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < TuningServiceImpl::kMaxStreams; ++i) {
    auto watcher = std::make_unique<Watcher>();
    watcher->reader = stub_->WatchJob(&watcher->context, request);
    // The call has come to its place; from here on nothing is read.
    v1::Job first;
    ASSERT_TRUE(watcher->reader->Read(&first));
    watchers.push_back(std::move(watcher));
  }
  EXPECT_TRUE(Watch(job.job_id()).empty());
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status_.error_message(), HasSubstr("128 clients already"));
  // Everything else goes on.
  grpc::ClientContext get, cancel;
  EXPECT_TRUE(stub_->GetJob(&get, request, &job).ok());
  EXPECT_TRUE(stub_->CancelJob(&cancel, request, &job).ok());
  // A place that is given up is free again.
  watchers.front()->context.TryCancel();
  watchers.front()->reader->Finish();
  do {
    Watch(job.job_id());
  } while (status_.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(status_.ok()) << status_.error_message();
  for (size_t i = 1; i < watchers.size(); ++i) {
    watchers[i]->context.TryCancel();
    watchers[i]->reader->Finish();
  }
}

TEST_F(Service, ATakenPortIsAnErrorThatSaysSo) {
  const auto second = TuningServer::Start(server_->address(), service_.get(),
                                          log_service_.get());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("already in use"));
  for (const char* address : {"nonsense", "127.0.0.1:", ":80", "h:99999"}) {
    EXPECT_EQ(TuningServer::Start(address, service_.get(), log_service_.get())
                  .status()
                  .code(),
              absl::StatusCode::kInvalidArgument)
        << address;
  }
}

TEST_F(Service, WithoutATrackerDevicesAreUnavailable) {
  tracker_server_->Shutdown();
  grpc::ClientContext devices;
  v1::ListDevicesResponse listed;
  const grpc::Status status =
      stub_->ListDevices(&devices, v1::ListDevicesRequest(), &listed);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("tracker at 127.0.0.1"));
}

}  // namespace
}  // namespace regatta
