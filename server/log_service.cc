#include "server/log_service.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/grpc_status_service.h"

namespace regatta {
namespace {

constexpr int kEntriesPerPage = 500;
// Well under what clients take.
constexpr size_t kBytesPerPage = 1 << 20;

}  // namespace

template <typename Response>
UpkeepProgress LogServiceImpl::Reporter(
    grpc::ServerContext* context, grpc::ServerWriter<Response>* writer) const {
  return [=, this](const std::string& phase, int64_t done, int64_t total) {
    if (closing_ || context->IsCancelled()) return false;
    Response response;
    v1::LogProgress& progress = *response.mutable_progress();
    progress.set_phase(phase);
    progress.set_done(done);
    progress.set_total(total);
    return writer->Write(response);
  };
}

grpc::Status LogServiceImpl::Check(
    grpc::ServerContext* context, const v1::CheckLogRequest* request,
    grpc::ServerWriter<v1::CheckLogResponse>* writer) {
  const auto visit = [&](const LogFinding& found) {
    v1::CheckLogResponse response;
    response.mutable_finding()->set_where(found.where);
    response.mutable_finding()->set_what(found.what);
    writer->Write(response);
  };
  const auto records = log_->upkeep().Check(visit, Reporter(context, writer));
  if (!records.ok()) return ToGrpc(records.status());
  v1::CheckLogResponse response;
  response.mutable_end()->set_records(*records);
  writer->Write(response);
  return grpc::Status::OK;
}

grpc::Status LogServiceImpl::Rebuild(grpc::ServerContext* context,
                                     const v1::RebuildLogRequest* request,
                                     v1::RebuildLogResponse* response) {
  const auto changed = log_->RebuildBest();
  if (!changed.ok()) return ToGrpc(changed.status());
  response->set_changed(*changed);
  return grpc::Status::OK;
}

grpc::Status LogServiceImpl::Backup(
    grpc::ServerContext* context, const v1::BackupLogRequest* request,
    grpc::ServerWriter<v1::BackupLogResponse>* writer) {
  std::unique_lock busy(backup_mutex_, std::try_to_lock);
  if (!busy.owns_lock()) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                        "another backup of this log runs; try again after it");
  }
  int64_t bytes = 0;
  const absl::Status sent = log_->upkeep().StreamBackup(
      [&](std::string_view data) -> absl::Status {
        v1::BackupLogResponse response;
        response.set_data(std::string(data));
        bytes += static_cast<int64_t>(data.size());
        if (!closing_ && writer->Write(response)) return absl::OkStatus();
        return absl::CancelledError("the backup was stopped");
      },
      Reporter(context, writer));
  if (!sent.ok()) return ToGrpc(sent);
  v1::BackupLogResponse response;
  response.mutable_end()->set_bytes(bytes);
  writer->Write(response);
  return grpc::Status::OK;
}

grpc::Status LogServiceImpl::Export(
    grpc::ServerContext* context, const v1::ExportLogRequest* request,
    grpc::ServerWriter<v1::ExportLogResponse>* writer) {
  v1::ExportLogResponse page;
  size_t bytes = 0;
  bool open = true;
  const absl::Status status =
      log_->exchange().Export([&](const v1::LogEntry& entry) {
        *page.add_entries() = entry;
        bytes += entry.ByteSizeLong();
        if (page.entries_size() == kEntriesPerPage || bytes >= kBytesPerPage) {
          open = !closing_ && writer->Write(page);
          page.Clear();
          bytes = 0;
        }
        return open;
      });
  if (!status.ok()) return ToGrpc(status);
  if (!open) {
    return grpc::Status(grpc::StatusCode::CANCELLED, "the export was stopped");
  }
  if (page.entries_size() > 0) writer->Write(page);
  return grpc::Status::OK;
}

grpc::Status LogServiceImpl::Import(grpc::ServerContext* context,
                                    const v1::ImportLogRequest* request,
                                    v1::ImportLogResponse* response) {
  const ImportOptions options{.name = request->name(), .describe = describe_};
  const std::vector<const v1::LogEntry*> entries(
      request->entries().pointer_begin(), request->entries().pointer_end());
  const auto verdicts = log_->exchange().Import(entries, options);
  if (!verdicts.ok()) return ToGrpc(verdicts.status());
  response->mutable_verdicts()->Add(verdicts->begin(), verdicts->end());
  return grpc::Status::OK;
}

grpc::Status LogServiceImpl::Snapshot(
    grpc::ServerContext* context, const v1::SnapshotLogRequest* request,
    grpc::ServerWriter<v1::SnapshotLogResponse>* writer) {
  const auto file = snapshot_();
  if (!file.ok()) return ToGrpc(file.status());
  v1::SnapshotLogResponse response;
  for (size_t at = 0; at < file->size(); at += kBytesPerPage) {
    response.set_chunk(file->substr(at, kBytesPerPage));
    if (closing_ || !writer->Write(response)) {
      return grpc::Status(grpc::StatusCode::CANCELLED,
                          "the snapshot was stopped");
    }
  }
  response.mutable_end()->set_file_bytes(static_cast<int64_t>(file->size()));
  writer->Write(response);
  return grpc::Status::OK;
}

}  // namespace regatta
