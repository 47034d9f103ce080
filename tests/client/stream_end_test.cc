// A client of a server that sends what cannot be parsed.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "proto/stream_end_client.h"
#include "regatta/v1/log_service.grpc.pb.h"

namespace regatta {
namespace {

class Findings : public v1::LogService::Service {
 public:
  explicit Findings(std::string where) : where_(std::move(where)) {}
  grpc::Status Check(
      grpc::ServerContext* context, const v1::CheckLogRequest* request,
      grpc::ServerWriter<v1::CheckLogResponse>* writer) override {
    v1::CheckLogResponse response;
    response.mutable_finding()->set_where(where_);
    writer->Write(response);
    writer->Write(response);
    return grpc::Status(grpc::StatusCode::ABORTED, "the end");
  }

 private:
  const std::string where_;
};

// How a check of a log with this finding ends; *read: the messages that came.
grpc::Status CheckLog(const std::string& where, int* read) {
  Findings service(where);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto stub = v1::LogService::NewStub(grpc::CreateChannel(
      "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  auto reader = stub->Check(&context, v1::CheckLogRequest());
  v1::CheckLogResponse response;
  while (reader->Read(&response)) ++*read;
  const grpc::Status status =
      FinishStream(*reader, context, std::chrono::milliseconds(500));
  server->Shutdown();
  return status;
}

TEST(FinishStream, IsTheStatusOfAStreamThatWasRead) {
  int read = 0;
  const grpc::Status status = CheckLog("trial 1", &read);
  EXPECT_EQ(read, 2);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(status.error_message(), "the end");
}

TEST(FinishStream, EndsThoughAMessageCannotBeParsed) {
  int read = 0;
  const grpc::Status status = CheckLog("trial \xff", &read);
  EXPECT_EQ(read, 0);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
}

}  // namespace
}  // namespace regatta
