package pkcs11

import "fmt"

// A word is CK_ULONG: unsigned long, which on Unix systems is as wide as a pointer.
type word = uintptr

// Places of functions in CK_FUNCTION_LIST.
const (
	fnInitialize = iota
	fnFinalize
	_ // C_GetInfo
	_ // C_GetFunctionList
	fnGetSlotList
	_ // C_GetSlotInfo
	fnGetTokenInfo
	_ // C_GetMechanismList
	_ // C_GetMechanismInfo
	_ // C_InitToken
	_ // C_InitPIN
	_ // C_SetPIN
	fnOpenSession
	fnCloseSession
	fnCloseAllSessions
	fnGetSessionInfo
	_ // C_GetOperationState
	_ // C_SetOperationState
	fnLogin
	_ // C_Logout
	_ // C_CreateObject
	_ // C_CopyObject
	fnDestroyObject
	_ // C_GetObjectSize
	fnGetAttributeValue
	fnSetAttributeValue
	fnFindObjectsInit
	fnFindObjects
	fnFindObjectsFinal
	fnSignInit        = 42
	fnSign            = 43
	fnGenerateKeyPair = 59
	functions         = 68
)

// Object classes (CKO), key types (CKK) and mechanisms (CKM).
const (
	classPublicKey  = 2
	classPrivateKey = 3

	keyRSA     = 0
	keyEC      = 3
	keyEdwards = 0x40

	mechanismRSAKeyPair     = 0
	mechanismRSA            = 1
	mechanismECKeyPair      = 0x1040
	mechanismECDSA          = 0x1041
	mechanismEdwardsKeyPair = 0x1055
	mechanismEdDSA          = 0x1057
)

// Attributes (CKA).
const (
	attrClass              = 0
	attrToken              = 1
	attrPrivate            = 2
	attrLabel              = 3
	attrKeyType            = 0x100
	attrID                 = 0x102
	attrSensitive          = 0x103
	attrEncrypt            = 0x104
	attrDecrypt            = 0x105
	attrWrap               = 0x106
	attrUnwrap             = 0x107
	attrSign               = 0x108
	attrSignRecover        = 0x109
	attrVerify             = 0x10A
	attrVerifyRecover      = 0x10B
	attrDerive             = 0x10C
	attrModulus            = 0x120
	attrModulusBits        = 0x121
	attrPublicExponent     = 0x122
	attrExtractable        = 0x162
	attrLocal              = 0x163
	attrNeverExtractable   = 0x164
	attrAlwaysSensitive    = 0x165
	attrECParams           = 0x180
	attrECPoint            = 0x181
	attrAlwaysAuthenticate = 0x202
)

// Flags of tokens and sessions (CKF), and who logs in (CKU).
const (
	flagOSLocking = 2
	flagRW        = 2
	flagSerial    = 4

	tokenInitialized = 0x400
	tokenCountLow    = 0x10000
	tokenFinalTry    = 0x20000
	tokenLocked      = 0x40000

	userNormal = 1
)

// An Error is what a PKCS #11 function returns beside CKR_OK.
type Error word

// Errors that this package tells apart.
const (
	errHostMemory         Error = 0x2
	errGeneral            Error = 0x5
	errFunctionFailed     Error = 0x6
	errAttributeReadOnly  Error = 0x10
	errAttributeSensitive Error = 0x11
	errAttributeType      Error = 0x12
	errActionProhibited   Error = 0x1B
	errDeviceError        Error = 0x30
	errDeviceRemoved      Error = 0x32
	errKeyHandle          Error = 0x60
	errMechanism          Error = 0x70
	errObjectHandle       Error = 0x82
	errPINIncorrect       Error = 0xA0
	errPINLocked          Error = 0xA4
	errSessionClosed      Error = 0xB0
	errSessionCount       Error = 0xB1
	errSessionHandle      Error = 0xB3
	errTokenNotPresent    Error = 0xE0
	errTokenNotRecognized Error = 0xE1
	errUserLoggedIn       Error = 0x100
	errUserNotLoggedIn    Error = 0x101
	errBufferTooSmall     Error = 0x150
	errNotInitialized     Error = 0x190
	errInitialized        Error = 0x191
)

var errorNames = map[Error]string{
	errHostMemory: "HOST_MEMORY", errGeneral: "GENERAL_ERROR", errFunctionFailed: "FUNCTION_FAILED", errAttributeReadOnly: "ATTRIBUTE_READ_ONLY",
	errAttributeSensitive: "ATTRIBUTE_SENSITIVE", errAttributeType: "ATTRIBUTE_TYPE_INVALID", errActionProhibited: "ACTION_PROHIBITED",
	errDeviceError: "DEVICE_ERROR", errDeviceRemoved: "DEVICE_REMOVED", errKeyHandle: "KEY_HANDLE_INVALID", errMechanism: "MECHANISM_INVALID",
	errObjectHandle: "OBJECT_HANDLE_INVALID", errPINIncorrect: "PIN_INCORRECT", errPINLocked: "PIN_LOCKED", errSessionClosed: "SESSION_CLOSED",
	errSessionCount: "SESSION_COUNT", errSessionHandle: "SESSION_HANDLE_INVALID", errTokenNotPresent: "TOKEN_NOT_PRESENT",
	errTokenNotRecognized: "TOKEN_NOT_RECOGNIZED", errUserLoggedIn: "USER_ALREADY_LOGGED_IN", errUserNotLoggedIn: "USER_NOT_LOGGED_IN",
	errBufferTooSmall: "BUFFER_TOO_SMALL", errNotInitialized: "CRYPTOKI_NOT_INITIALIZED", errInitialized: "CRYPTOKI_ALREADY_INITIALIZED",
}

func (e Error) Error() string {
	if name, ok := errorNames[e]; ok {
		return "CKR_" + name
	}
	return fmt.Sprintf("CKR 0x%x", word(e))
}

// lost says that the session, the token or an object of it is gone, so that all must be looked up again.
func (e Error) lost() bool {
	switch e {
	case errGeneral, errFunctionFailed, errDeviceError, errDeviceRemoved, errKeyHandle, errObjectHandle, errSessionClosed,
		errSessionHandle, errTokenNotPresent, errTokenNotRecognized, errUserNotLoggedIn, errNotInitialized:
		return true
	}
	return false
}
