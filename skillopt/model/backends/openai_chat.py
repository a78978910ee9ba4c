"""Azure OpenAI, and OpenAI or a server like it when the auth mode says so: Chat Completions and the Responses API.

Settings (see the provider's row): `endpoint`, `api_version`, `api_key`, `auth_mode`, `ad_scope`,
`managed_identity_client_id`. The model is the name of the deployment; some models are served by the Responses API only
(`responses_api.needs_responses_api`), and so are tools that the service runs itself. Address forms and headers are
those of the official `openai` package.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from skillopt.errors import AuthError, BadRequestError, ModelError, ModelSetupError
from skillopt.model import chat_completions, responses_api
from skillopt.model.azure_auth import SignIn, sign_in
from skillopt.model.chat_completions import Dialect, completions_url, post_json
from skillopt.model.registry import setting_hint
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import RoleConfig

DIALECT = Dialect(cap_field="max_completion_tokens", sends_effort=True)

_PATH_SAFE = "-._~!$&'()*+,;=:@"
_RESPONSES_END = re.compile(r"/responses(?=\?|$)")


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One request to the deployment. Raises ConfigError for missing settings, else `skillopt.errors.ModelError`."""
    signed = sign_in(role, ctx)
    model = call.model or role.model
    by_responses = responses_api.needs_responses_api(model) or responses_api.has_built_in_tools(call.tools)
    url = request_url(signed, model, str(role.settings.get("api_version") or "").strip(), responses=by_responses)
    if by_responses:
        payload = responses_api.build_payload(call, role, ctx)
    else:
        payload = chat_completions.build_payload(call, role, DIALECT, ctx.dropped, cap_factor=ctx.cap_factor)
    try:
        answer, where = post_json(url, payload, role, ctx, key=signed.key, key_header=signed.key_header)
    except (AuthError, BadRequestError) as error:
        raise _advised(error, signed, role) or error from None
    if by_responses:
        return responses_api.parse_reply(answer, where)
    return chat_completions.parse_reply(answer, where, DIALECT, call)


def request_url(signed: SignIn, model: str, api_version: str, *, responses: bool = False) -> str:
    """The address of one request.

    Azure: `<endpoint>/openai/deployments/<model>/chat/completions?api-version=<v>`, or `<endpoint>/openai/responses…`.
    Otherwise `<endpoint>/chat/completions` or `<endpoint>/responses`, where a bare host gets `/v1` and an endpoint that
    ends so already is taken as it is. Raises ModelSetupError for an endpoint or a model that makes no address.
    """
    if not signed.azure:
        base = _RESPONSES_END.sub("", signed.endpoint)
        url = completions_url(base)
        return re.sub(r"/chat/completions(?=\?|$)", "/responses", url) if responses else url
    if not re.fullmatch(r"https?://[^/\s?#\\]+[^\s?#\\]*", signed.endpoint, re.IGNORECASE):
        raise ModelSetupError(
            "The endpoint of Azure OpenAI must be an address like https://NAME.openai.azure.com, without a query."
        )
    if not api_version:
        raise ModelSetupError("Azure OpenAI needs an api_version; set model.azure_openai_api_version.")
    if model in ("", ".", ".."):
        raise ModelSetupError(f"{model!r} names no deployment of Azure OpenAI; set the role's model.")
    path = "responses" if responses else f"deployments/{quote(model, safe=_PATH_SAFE)}/chat/completions"
    return f"{signed.endpoint}/openai/{path}?api-version={quote(api_version, safe='')}"


def _advised(error: ModelError, signed: SignIn, role: RoleConfig) -> ModelError | None:
    """What else to say about a refusal that our settings explain, None for other refusals."""
    if isinstance(error, AuthError) and signed.by_token:
        return AuthError(
            f"{error} The sign-in was by {signed.mode}: the account needs a role such as 'Cognitive Services OpenAI "
            "User' on this resource, and `az login` must be for its tenant."
        )
    if signed.azure and isinstance(error, BadRequestError) and re.search(r"api[- _]version", str(error), re.IGNORECASE):
        return ModelSetupError(f"{error} Change {setting_hint(role, 'api_version')}.")
    return None
