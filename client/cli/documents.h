// The JSON documents of `--json`: names, units and what may be null are a
// contract (docs/cli.md). Unknown is null; times are integers in nanoseconds.
#ifndef REGATTA_CLIENT_CLI_DOCUMENTS_H_
#define REGATTA_CLIENT_CLI_DOCUMENTS_H_

#include <nlohmann/json.hpp>

#include "regatta/v1/tuning_service.pb.h"

namespace regatta::cli {

using Json = nlohmann::ordered_json;

Json DeviceDocument(const v1::DeviceStatus& device);
Json BuilderDocument(const v1::BuilderStatus& builder);
// Trust, operator state and labels.
Json StandingDocument(const v1::DeviceStanding& standing);
Json EventDocument(const v1::DeviceEvent& event);
Json JobDocument(const v1::Job& job);
Json BestDocument(const v1::BestAnswer& answer);
Json RecordDocument(const v1::Record& record);

// Null for 0 and below, and for what is not finite.
Json PositiveOrNull(int64_t value);
Json PositiveOrNull(double value);
Json TextOrNull(const std::string& text);

// Prints the document and a newline on standard output.
void PrintJson(const Json& document);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_DOCUMENTS_H_
