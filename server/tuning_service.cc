#include "server/tuning_service.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ops/op.h"
#include "proto/grpc_status_service.h"
#include "proto/outcome_names.h"
#include "proto/security/access_service.h"
#include "server/stream_sender.h"

namespace regatta {
namespace {

constexpr absl::Duration kWatchInterval = absl::Milliseconds(100);
// How soon a stream whose client is gone ends.
constexpr absl::Duration kWatchWait = absl::Seconds(1);
constexpr int kRecordsPerPage = 500;
// A page of records with many blocks stays well under what clients take (4
// MiB).
constexpr size_t kBytesPerPage = 1 << 20;

grpc::Status TooMany() {
  return grpc::Status(
      grpc::StatusCode::RESOURCE_EXHAUSTED,
      absl::StrCat("the server streams to ", TuningServiceImpl::kMaxStreams,
                   " clients already; try again later"));
}

template <typename T>
grpc::Status Reply(absl::StatusOr<T> result, T* response) {
  if (!result.ok()) return ToGrpc(result.status());
  *response = *std::move(result);
  return grpc::Status::OK;
}

absl::StatusOr<RecordFilter> MakeFilter(const v1::ListRecordsRequest& request) {
  auto workload = ParseWorkload(request.workload());
  if (!workload.ok()) return Annotate(workload.status(), "workload");
  RecordFilter filter;
  filter.workload_key = workload->key;
  filter.device_class = request.device_class();
  filter.imported = true;
  if (!request.any_policy()) {
    ASSIGN_OR_RETURN(const v1::Policy policy,
                     NormalisePolicy(request.policy()));
    filter.threads = policy.threads();
    filter.cache = policy.cache();
  }
  return filter;
}

}  // namespace

TuningServiceImpl::TuningServiceImpl(TuningServiceOptions options)
    : options_(std::move(options)), facts_(options_.log) {
  best_context_.source = options_.log;
  best_context_.memo = &memo_;
  best_context_.complete = options_.complete_target;
  best_context_.compiler_version = options_.compiler_version;
  best_context_.gives_binary = options_.gives_binary;
  best_context_.check_class = [this](const std::string& name, int threads) {
    return CheckClass(name, threads);
  };
  best_context_.target_of_class =
      [this](const std::string& name) -> std::optional<std::string> {
    const auto known = options_.jobs->FindClass(name);
    if (!known) return std::nullopt;
    return known->target;
  };
  best_context_.is_simulated = [this](const std::string& name) {
    const auto known = options_.jobs->FindClass(name);
    return known && known->simulated;
  };
  best_context_.facts_of_class = [this](const std::string& name) {
    return facts_.Find(name);
  };
  best_context_.measure_protocol = [this](const std::string& name) {
    return options_.jobs->MeasureProtocol(name);
  };
}

absl::Status TuningServiceImpl::CheckClass(const std::string& device_class,
                                           int threads) const {
  const auto fleet = options_.jobs->fleet();
  // The common case reads no log.
  RequestContext context;
  context.fleet = fleet.get();
  if (fleet->Find(device_class) == nullptr) {
    ASSIGN_OR_RETURN(context.logged_classes,
                     options_.jobs->LoggedClasses(/*imported=*/true));
  }
  return CheckDeviceClass(device_class, threads, context);
}

grpc::Status TuningServiceImpl::SubmitJob(grpc::ServerContext* context,
                                          const v1::SubmitJobRequest* request,
                                          v1::Job* response) {
  const auto caller = PeerOf(*context);
  if (!caller) return Reply(options_.jobs->Submit(*request), response);
  v1::SubmitJobRequest named = *request;
  named.set_user(caller->name);
  return Reply(options_.jobs->Submit(named), response);
}

grpc::Status TuningServiceImpl::GetJob(grpc::ServerContext* context,
                                       const v1::GetJobRequest* request,
                                       v1::Job* response) {
  return Reply(options_.jobs->Get(request->job_id()), response);
}

grpc::Status TuningServiceImpl::ListJobs(grpc::ServerContext* context,
                                         const v1::ListJobsRequest* request,
                                         v1::ListJobsResponse* response) {
  auto jobs = options_.jobs->List();
  if (!jobs.ok()) return ToGrpc(jobs.status());
  for (v1::Job& job : *jobs) {
    *response->add_jobs() = std::move(job);
  }
  return grpc::Status::OK;
}

grpc::Status TuningServiceImpl::WatchJob(grpc::ServerContext* context,
                                         const v1::GetJobRequest* request,
                                         grpc::ServerWriter<v1::Job>* writer) {
  const CallLimit::Slot slot(&streams_);
  if (!slot.granted()) return TooMany();
  StreamSender<v1::Job> sender(
      [writer](const v1::Job& job) { return writer->Write(job); },
      [context] { context->TryCancel(); });
  int64_t version = 0;
  while (!context->IsCancelled() && sender.Open()) {
    const int64_t seen = version;
    auto job =
        options_.jobs->WaitForChange(request->job_id(), kWatchWait, &version);
    if (!job.ok()) return ToGrpc(job.status());
    if (version == seen) continue;
    if (IsEnded(job->state())) {
      sender.Post(*std::move(job));
      if (sender.Finish()) return grpc::Status::OK;
      break;
    }
    sender.Report(*std::move(job));
    if (closing_.WaitForNotificationWithTimeout(kWatchInterval)) break;
  }
  return closing_.HasBeenNotified()
             ? grpc::Status(grpc::StatusCode::UNAVAILABLE,
                            "the server is shutting down")
             : grpc::Status(grpc::StatusCode::CANCELLED,
                            "the client read nothing of the job for a minute");
}

grpc::Status TuningServiceImpl::CancelJob(grpc::ServerContext* context,
                                          const v1::GetJobRequest* request,
                                          v1::Job* response) {
  return Reply(options_.jobs->Cancel(request->job_id()), response);
}

grpc::Status TuningServiceImpl::ResumeJob(grpc::ServerContext* context,
                                          const v1::GetJobRequest* request,
                                          v1::Job* response) {
  return Reply(options_.jobs->Resume(request->job_id()), response);
}

grpc::Status TuningServiceImpl::Best(grpc::ServerContext* context,
                                     const v1::BestRequest* request,
                                     v1::BestAnswer* response) {
  BestRequestContext now = best_context_;
  now.now_unix_ms = absl::ToUnixMillis(options_.clock->Wall());
  const SteadyTime asked = options_.clock->Steady();
  const absl::StatusOr<v1::BestAnswer> answer =
      AnswerBestRequest(now, *request);
  if (options_.lookups != nullptr) {
    options_.lookups->Answered(answer, options_.clock->Steady() - asked);
  }
  return Reply(answer, response);
}

grpc::Status TuningServiceImpl::ListRecords(
    grpc::ServerContext* context, const v1::ListRecordsRequest* request,
    grpc::ServerWriter<v1::ListRecordsResponse>* writer) {
  const auto filter = MakeFilter(*request);
  if (!filter.ok()) return ToGrpc(filter.status());
  if (!request->device_class().empty()) {
    const absl::Status known = CheckClass(request->device_class(), 1);
    if (!known.ok()) return ToGrpc(known);
  }
  const CallLimit::Slot slot(&streams_);
  if (!slot.granted()) return TooMany();
  StreamSender<v1::ListRecordsResponse> sender(
      [writer](const v1::ListRecordsResponse& one) {
        return writer->Write(one);
      },
      [context] { context->TryCancel(); });
  v1::ListRecordsResponse page;
  size_t bytes = 0;
  bool open = true;
  const absl::Status status =
      options_.log->ForEachRecord(*filter, [&](const StoredRecord& stored) {
        v1::Record* record = page.add_records();
        *record->mutable_result() = stored.result;
        record->set_recorded_unix_ms(stored.recorded_unix_ms);
        bytes += record->ByteSizeLong();
        if (page.records_size() == kRecordsPerPage || bytes >= kBytesPerPage) {
          open = sender.Send(std::exchange(page, {}));
          bytes = 0;
        }
        return open;
      });
  if (!status.ok()) return ToGrpc(status);
  if (open && page.records_size() > 0) sender.Post(std::move(page));
  if (sender.Finish()) return grpc::Status::OK;
  return grpc::Status(grpc::StatusCode::CANCELLED,
                      "the client read nothing of the records for a minute");
}

grpc::Status TuningServiceImpl::ListDevices(
    grpc::ServerContext* context, const v1::ListDevicesRequest* request,
    v1::ListDevicesResponse* response) {
  return Reply(options_.list_devices(), response);
}

grpc::Status TuningServiceImpl::ControlDevices(
    grpc::ServerContext* context, const v1::ControlDevicesRequest* request,
    v1::ControlDevicesResponse* response) {
  const auto caller = PeerOf(*context);
  if (!caller) return Reply(options_.control_devices(*request), response);
  v1::ControlDevicesRequest named = *request;
  named.set_by(caller->name);
  return Reply(options_.control_devices(named), response);
}

grpc::Status TuningServiceImpl::DeviceHistory(
    grpc::ServerContext* context, const v1::DeviceHistoryRequest* request,
    v1::DeviceHistoryResponse* response) {
  return Reply(options_.device_history(*request), response);
}

}  // namespace regatta
