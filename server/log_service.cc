#include "server/log_service.h"

#include <string>

#include "proto/grpc_status_service.h"

namespace regatta {

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

}  // namespace regatta
