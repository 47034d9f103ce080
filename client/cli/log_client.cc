#include "client/cli/log_client.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/channel_client.h"
#include "client/cli/stop_signal.h"
#include "proto/stream_end_client.h"
#include "regatta/v1/log_service.grpc.pb.h"

namespace regatta::cli {
namespace {

// A batch, on a busy disk.
constexpr std::chrono::seconds kImportLimit = std::chrono::minutes(2);

class ServerLog : public LogAccess {
 public:
  explicit ServerLog(ServerAddress address)
      : place_(absl::StrCat("the server at ", address.address)),
        channel_(std::move(address)),
        stub_(v1::LogService::NewStub(channel_.get())) {}

  std::string Place() const override { return place_; }

  absl::StatusOr<LogCheck> Check(
      const std::function<void(const LogFinding&)>& visit,
      const UpkeepProgress& progress) override {
    grpc::ClientContext context;
    auto reader = stub_->Check(&context, v1::CheckLogRequest());
    v1::CheckLogResponse response;
    std::optional<LogCheck> check;
    while (reader->Read(&response)) {
      if (response.has_finding()) {
        visit({response.finding().where(), response.finding().what()});
      } else if (response.has_end()) {
        check = {response.end().records(), response.end().findings()};
      } else if (response.has_progress() &&
                 !Report(progress, response.progress())) {
        context.TryCancel();
      }
    }
    RETURN_IF_ERROR(FromGrpc(FinishStream(*reader, context)));
    if (!check) return CutOff();
    return *check;
  }

  absl::Status Backup(const std::function<absl::Status(std::string_view)>& data,
                      const UpkeepProgress& progress) override {
    grpc::ClientContext context;
    auto reader = stub_->Backup(&context, v1::BackupLogRequest());
    v1::BackupLogResponse response;
    int64_t bytes = 0, promised = -1;
    absl::Status taken;
    while (reader->Read(&response)) {
      if (response.has_end()) {
        promised = response.end().bytes();
      } else if (response.has_progress()) {
        if (!Report(progress, response.progress())) context.TryCancel();
      } else if (taken.ok()) {
        bytes += static_cast<int64_t>(response.data().size());
        taken = data(response.data());
        if (!taken.ok()) context.TryCancel();
      }
    }
    const grpc::Status status = FinishStream(*reader, context);
    RETURN_IF_ERROR(taken);
    RETURN_IF_ERROR(FromGrpc(status));
    return bytes == promised ? absl::OkStatus() : CutOff();
  }

  absl::Status Export(
      const std::function<bool(const v1::LogEntry&)>& visit) override {
    grpc::ClientContext context;
    auto reader = stub_->Export(&context, v1::ExportLogRequest());
    v1::ExportLogResponse page;
    bool complete = false, wanted = true;
    while (wanted && reader->Read(&page)) {
      for (const v1::LogEntry& entry : page.entries()) {
        complete = entry.has_end();
        if (!(wanted = visit(entry))) break;
      }
    }
    if (!wanted) context.TryCancel();
    const grpc::Status status = FinishStream(*reader, context);
    if (!wanted) return absl::OkStatus();
    RETURN_IF_ERROR(FromGrpc(status));
    return complete ? absl::OkStatus() : CutOff();
  }

  absl::StatusOr<std::vector<v1::ImportVerdict>> Import(
      const std::string& name, std::vector<v1::LogEntry> entries) override {
    v1::ImportLogRequest request;
    request.set_name(name);
    for (v1::LogEntry& entry : entries) {
      *request.add_entries() = std::move(entry);
    }
    const auto response = channel_.Call(*stub_, &v1::LogService::Stub::Import,
                                        request, kImportLimit);
    if (!response.ok()) return Explain(response.status());
    if (response->verdicts_size() != request.entries_size()) return CutOff();
    return std::vector<v1::ImportVerdict>(response->verdicts().begin(),
                                          response->verdicts().end());
  }

  absl::StatusOr<int64_t> RebuildBest(const UpkeepProgress& progress) override {
    grpc::ClientContext context;
    auto reader = stub_->Rebuild(&context, v1::RebuildLogRequest());
    v1::RebuildLogResponse response;
    std::optional<int64_t> changed;
    while (reader->Read(&response)) {
      if (response.has_end()) {
        changed = response.end().changed();
      } else if (response.has_progress() &&
                 !Report(progress, response.progress())) {
        context.TryCancel();
      }
    }
    RETURN_IF_ERROR(FromGrpc(FinishStream(*reader, context)));
    if (!changed) return CutOff();
    return *changed;
  }

  absl::StatusOr<std::string> Snapshot(
      bool rebuild, const UpkeepProgress& progress) override {
    if (rebuild) {
      return absl::InvalidArgumentError(
          "--rebuild goes with --log: a server builds by itself what another "
          "compiler measured");
    }
    grpc::ClientContext context;
    auto reader = stub_->Snapshot(&context, v1::SnapshotLogRequest());
    v1::SnapshotLogResponse response;
    std::string file;
    bool ended = false;
    while (reader->Read(&response)) {
      if (response.has_chunk()) file += response.chunk();
      if (response.has_progress() && !Report(progress, response.progress())) {
        context.TryCancel();
      }
      if (response.has_end()) {
        ended =
            response.end().file_bytes() == static_cast<int64_t>(file.size());
      }
    }
    RETURN_IF_ERROR(FromGrpc(FinishStream(*reader, context)));
    if (!ended) return CutOff();
    return file;
  }

 private:
  static bool Report(const UpkeepProgress& progress,
                     const v1::LogProgress& report) {
    return !progress || progress(report.phase(), report.done(), report.total());
  }

  absl::Status CutOff() const {
    return absl::UnavailableError(
        absl::StrCat(place_, " ended its answer too soon"));
  }
  absl::Status FromGrpc(const grpc::Status& status) const {
    if (status.error_code() == grpc::StatusCode::CANCELLED && StopRequested()) {
      return absl::CancelledError(
          absl::StrCat("stopped; ", place_, " ends it, too"));
    }
    return Explain(channel_.FromGrpc(status));
  }
  static absl::Status Explain(const absl::Status& status) {
    if (!absl::IsUnavailable(status)) return status;
    return absl::UnavailableError(
        absl::StrCat(std::string(status.message()),
                     ", or a log that no server holds with --log FILE"));
  }

  const std::string place_;
  ServerChannel channel_;
  std::unique_ptr<v1::LogService::Stub> stub_;
};

}  // namespace

std::unique_ptr<LogAccess> MakeServerLog(ServerAddress address) {
  return std::make_unique<ServerLog>(std::move(address));
}

}  // namespace regatta::cli
