#include "server/log_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/grpc_status_service.h"
#include "proto/utf8_texts.h"
#include "server/stream_sender.h"

namespace regatta {
namespace {

constexpr int kEntriesPerPage = 500;
// Well under what clients take.
constexpr size_t kBytesPerPage = 1 << 20;

grpc::Status TooMany() {
  return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                      "too many calls read this log at once; try again later");
}

grpc::Status TooManyWhole() {
  return grpc::Status(
      grpc::StatusCode::RESOURCE_EXHAUSTED,
      absl::StrCat(LogServiceImpl::kMaxWholeReads,
                   " checks, rebuilds or snapshots of this log run already; "
                   "try again after one of them"));
}

}  // namespace

template <typename Response>
class LogServiceImpl::Stream {
 public:
  Stream(const LogServiceImpl* service, grpc::ServerContext* context,
         grpc::ServerWriter<Response>* writer)
      : service_(service),
        context_(context),
        sender_([writer](const Response& one) { return writer->Write(one); },
                [context] { context->TryCancel(); }) {}

  StreamSender<Response>& operator*() { return sender_; }
  StreamSender<Response>* operator->() { return &sender_; }

  // Sends each report and stops what nobody waits for any more.
  UpkeepProgress Progress() {
    return [this](const std::string& phase, int64_t done, int64_t total) {
      if (service_->closing_ || context_->IsCancelled()) return false;
      Response response;
      v1::LogProgress& progress = *response.mutable_progress();
      progress.set_phase(phase);
      progress.set_done(done);
      progress.set_total(total);
      return sender_.Report(std::move(response));
    };
  }

  // Of a call that came to its end, unless the client has not taken all of it.
  grpc::Status End() {
    if (sender_.Finish()) return grpc::Status::OK;
    return grpc::Status(grpc::StatusCode::CANCELLED,
                        "the client read nothing of the answer for a minute");
  }

 private:
  const LogServiceImpl* const service_;
  grpc::ServerContext* const context_;
  StreamSender<Response> sender_;
};

grpc::Status LogServiceImpl::Check(
    grpc::ServerContext* context, const v1::CheckLogRequest* request,
    grpc::ServerWriter<v1::CheckLogResponse>* writer) {
  const CallLimit::Slot whole(&whole_reads_);
  if (!whole.granted()) return TooManyWhole();
  const CallLimit::Slot slot(&streams_);
  if (!slot.granted()) return TooMany();
  Stream<v1::CheckLogResponse> stream(this, context, writer);
  const auto visit = [&](const LogFinding& found) {
    v1::CheckLogResponse response;
    response.mutable_finding()->set_where(found.where);
    response.mutable_finding()->set_what(found.what);
    stream->Post(std::move(response));
  };
  const auto check = log_->upkeep().Check(visit, stream.Progress());
  if (!check.ok()) return ToGrpc(check.status());
  v1::CheckLogResponse response;
  response.mutable_end()->set_records(check->records);
  response.mutable_end()->set_findings(check->findings);
  stream->Post(std::move(response));
  return stream.End();
}

grpc::Status LogServiceImpl::Rebuild(
    grpc::ServerContext* context, const v1::RebuildLogRequest* request,
    grpc::ServerWriter<v1::RebuildLogResponse>* writer) {
  const CallLimit::Slot whole(&whole_reads_);
  if (!whole.granted()) return TooManyWhole();
  const CallLimit::Slot slot(&streams_);
  if (!slot.granted()) return TooMany();
  Stream<v1::RebuildLogResponse> stream(this, context, writer);
  const auto changed = log_->RebuildBest(stream.Progress());
  if (!changed.ok()) return ToGrpc(changed.status());
  v1::RebuildLogResponse response;
  response.mutable_end()->set_changed(*changed);
  stream->Post(std::move(response));
  return stream.End();
}

grpc::Status LogServiceImpl::Backup(
    grpc::ServerContext* context, const v1::BackupLogRequest* request,
    grpc::ServerWriter<v1::BackupLogResponse>* writer) {
  std::unique_lock busy(backup_mutex_, std::try_to_lock);
  if (!busy.owns_lock()) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                        "another backup of this log runs; try again after it");
  }
  Stream<v1::BackupLogResponse> stream(this, context, writer);
  int64_t bytes = 0;
  const absl::Status sent = log_->upkeep().StreamBackup(
      [&](std::string_view data) -> absl::Status {
        v1::BackupLogResponse response;
        response.set_data(std::string(data));
        bytes += static_cast<int64_t>(data.size());
        if (!closing_ && stream->Send(std::move(response))) {
          return absl::OkStatus();
        }
        return absl::CancelledError("the backup was stopped");
      },
      stream.Progress());
  if (!sent.ok()) return ToGrpc(sent);
  v1::BackupLogResponse response;
  response.mutable_end()->set_bytes(bytes);
  stream->Post(std::move(response));
  return stream.End();
}

grpc::Status LogServiceImpl::Export(
    grpc::ServerContext* context, const v1::ExportLogRequest* request,
    grpc::ServerWriter<v1::ExportLogResponse>* writer) {
  const CallLimit::Slot slot(&streams_);
  if (!slot.granted()) return TooMany();
  Stream<v1::ExportLogResponse> stream(this, context, writer);
  v1::ExportLogResponse page;
  size_t bytes = 0;
  bool open = true;
  const absl::Status status =
      log_->exchange().Export([&](const v1::LogEntry& entry) {
        *page.add_entries() = entry;
        bytes += entry.ByteSizeLong();
        if (page.entries_size() == kEntriesPerPage || bytes >= kBytesPerPage) {
          open = !closing_ && stream->Send(std::exchange(page, {}));
          bytes = 0;
        }
        return open;
      });
  if (!status.ok()) return ToGrpc(status);
  if (!open) {
    return grpc::Status(grpc::StatusCode::CANCELLED, "the export was stopped");
  }
  if (page.entries_size() > 0) stream->Post(std::move(page));
  return stream.End();
}

grpc::Status LogServiceImpl::Import(grpc::ServerContext* context,
                                    const v1::ImportLogRequest* request,
                                    v1::ImportLogResponse* response) {
  const ImportOptions options{.name = request->name(),
                              .describe = describe_,
                              .check_spec = check_spec_};
  const std::vector<const v1::LogEntry*> entries(
      request->entries().pointer_begin(), request->entries().pointer_end());
  const auto verdicts = log_->exchange().Import(entries, options);
  if (!verdicts.ok()) return ToGrpc(verdicts.status());
  response->mutable_verdicts()->Add(verdicts->begin(), verdicts->end());
  // Verdicts quote what was given.
  MakeTextsUtf8(*response);
  return grpc::Status::OK;
}

grpc::Status LogServiceImpl::Snapshot(
    grpc::ServerContext* context, const v1::SnapshotLogRequest* request,
    grpc::ServerWriter<v1::SnapshotLogResponse>* writer) {
  const CallLimit::Slot whole(&whole_reads_);
  if (!whole.granted()) return TooManyWhole();
  const CallLimit::Slot slot(&streams_);
  if (!slot.granted()) return TooMany();
  Stream<v1::SnapshotLogResponse> stream(this, context, writer);
  const auto file = snapshot_(stream.Progress());
  if (!file.ok()) return ToGrpc(file.status());
  for (size_t at = 0; at < file->size(); at += kBytesPerPage) {
    v1::SnapshotLogResponse response;
    response.set_chunk(file->substr(at, kBytesPerPage));
    if (closing_ || !stream->Send(std::move(response))) {
      return grpc::Status(grpc::StatusCode::CANCELLED,
                          "the snapshot was stopped");
    }
  }
  v1::SnapshotLogResponse response;
  response.mutable_end()->set_file_bytes(static_cast<int64_t>(file->size()));
  stream->Post(std::move(response));
  return stream.End();
}

}  // namespace regatta
