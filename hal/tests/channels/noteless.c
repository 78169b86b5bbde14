/* A channel provider that carries no note. */
#include "halyard/channel.h"

int32_t halyard_channel_negotiate(const halyard_channel_request_t* request, halyard_channel_reply_t* reply) {
  (void)request;
  (void)reply;
  return 0;
}
