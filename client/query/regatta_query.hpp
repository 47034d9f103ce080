// Best-known schedules from a file, without a server: the C++ interface of
// libregatta_query, on top of regatta_query.h, in this header alone. C++17.
//
//   regatta::Query query("best.rgs");
//   regatta::QueryQuestion question;
//   question.workload = "matmul(m=512,n=512,k=512)";
//   question.device_class = "znver4-2c";
//   std::string schedule = query.Ask(question).schedule;
//
// Opening and Ask throw regatta::QueryError; it is thrown on this side of the C
// interface only. Thread safety is that of regatta_query.h.
#ifndef REGATTA_QUERY_HPP_
#define REGATTA_QUERY_HPP_

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "regatta_query.h"

namespace regatta {

class QueryError : public std::runtime_error {
 public:
  QueryError(regatta_query_code code, const std::string &message)
      : std::runtime_error(message), code_(code) {}
  regatta_query_code code() const { return code_; }

 private:
  regatta_query_code code_;
};

struct QueryQuestion {
  std::string workload;
  std::string device_class;  // this or `target`
  std::string target;
  int threads = 1;
  regatta_query_cache cache = REGATTA_QUERY_WARM;
};

// The answers to a batch, in the order of the questions.
class QueryAnswers {
 public:
  explicit QueryAnswers(regatta_query_answers *answers)
      : answers_(answers, regatta_query_free) {}
  std::size_t size() const { return regatta_query_count(answers_.get()); }
  // REQUIRES: index < size(). Valid while any copy of this object lives. An
  // answer may be an error: see its `code`.
  const regatta_query_answer &operator[](std::size_t index) const {
    return *regatta_query_get(answers_.get(), index);
  }

 private:
  std::shared_ptr<regatta_query_answers> answers_;
};

class Query {
 public:
  explicit Query(const std::string &path) : query_(nullptr, Close) {
    regatta_query_error error;
    query_.reset(regatta_query_open(path.c_str(), &error));
    if (query_ == nullptr) throw QueryError(error.code, error.message);
  }

  QueryAnswers AskAll(const std::vector<QueryQuestion> &questions) const {
    std::vector<regatta_query_question> asked;
    asked.reserve(questions.size());
    for (const QueryQuestion &question : questions) {
      regatta_query_question one = {};
      one.size = sizeof(one);
      one.workload = question.workload.c_str();
      one.device_class = OrNull(question.device_class);
      one.target = OrNull(question.target);
      one.threads = question.threads;
      one.cache = question.cache;
      asked.push_back(one);
    }
    regatta_query_error error;
    regatta_query_answers *answers =
        regatta_query_ask(query_.get(), asked.data(), asked.size(), &error);
    if (answers == nullptr) throw QueryError(error.code, error.message);
    return QueryAnswers(answers);
  }

  // The one answer, held by `answers` where its texts must outlive the call.
  struct Answer {
    regatta_query_grade grade;
    std::string schedule;
    std::string reason;
    std::string differing_field;
    std::int64_t time_ns;
    QueryAnswers answers;  // answers[0] has the rest
  };
  Answer Ask(const QueryQuestion &question) const {
    QueryAnswers answers = AskAll({question});
    const regatta_query_answer &one = answers[0];
    if (one.code != REGATTA_QUERY_OK) throw QueryError(one.code, one.message);
    return {one.grade,           one.schedule, one.reason,
            one.differing_field, one.time_ns,  answers};
  }

 private:
  static void Close(regatta_query *query) { regatta_query_close(query); }
  static const char *OrNull(const std::string &text) {
    return text.empty() ? nullptr : text.c_str();
  }
  std::unique_ptr<regatta_query, void (*)(regatta_query *)> query_;
};

}  // namespace regatta

#endif  // REGATTA_QUERY_HPP_
